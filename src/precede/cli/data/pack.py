"""`precede spark pack`: the archive from which the executors of a cluster run the same compiled code."""

from pathlib import Path
from typing import Annotated

from precede.cli.parameters import Group, Option

app = Group()


@app.callback()
def group() -> None:
    """Prepare a Spark cluster.

    \b
    Example:
      precede spark pack
      precede sweep buses.toml --master spark://HOST:7077
    """


@app.command("pack")
def pack_for_executors(
    out: Annotated[
        Path | None,
        Option(metavar="FILE.tar.gz", help="where to write it (default: the user's cache folder)"),
    ] = None,
    more: Annotated[
        list[str] | None,
        Option("--with", metavar="NAME", help="another installed distribution; can be repeated"),
    ] = None,
    bare: Annotated[
        bool, Option("--bare", help="without numpy, pyarrow and the like: executors have them")
    ] = False,
    as_json: Annotated[bool, Option("--json", help="print one JSON object")] = False,
) -> None:
    """Write an archive for executors: this package, compiled if it is compiled here, and what it needs.

    Sessions on a cluster use the archive in the cache folder by themselves, as long as the code here is the
    same. Name any other one: --conf spark.archives=FILE.tar.gz#precede-pack. Executors need a Python of the
    same version.

    \b
    Example:
      precede spark pack
      precede spark pack --out precede-pack.tar.gz --with my-protocols
    """
    import json
    import sys

    import msgspec

    from precede.cli.progress import working
    from precede.pipeline.sessions.pack import pack

    with working("packing this installation"):
        packed = pack(out, more or (), bare)
    if as_json:
        print(json.dumps(msgspec.to_builtins(packed)))
        return
    engine = "compiled engine" if packed.compiled else "plain engine (nothing is compiled here: make compile)"
    contents = f"{engine}, {packed.kernels} numba kernels, {len(packed.distributions)} other packages"
    print(f"{packed.path}: {packed.size / 1e6:.0f} MB: {contents}")
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    if out is None:
        print(f"  sessions on a cluster use it by themselves; executors need Python {python}")
    else:
        print(f"  --conf spark.archives={packed.path}#precede-pack; executors need Python {python}")
