"""Files at one location: a folder, or a URL of an object store (`s3`, `gs`, `abfss`, `hdfs`, and others).

Only operations that every storage has are used. `put` and `put_file` make a file visible whole: by a rename in
a folder, by one upload in an object store. There are no locks, no appends and no renames across objects.
pyarrow has the clients; for a scheme that it does not know, fsspec is asked. Endpoint, region and credentials
come from the environment variables that the clients know (`AWS_ENDPOINT_URL`, `AWS_ACCESS_KEY_ID`, ...).

Paths are relative to the location, with `/` between their parts. A pickled storage is its location only:
credentials are never pickled.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyarrow import fs

from precede.core.errors import BadInput, Unavailable

ENVIRONMENT: Final = re.compile(r"AWS_|GOOGLE_APPLICATION_|STORAGE_EMULATOR_|AZURE_|HADOOP_|ARROW_LIBHDFS")
"""Environment variables that decide how a storage is reached; workers need them too."""

_URL: Final = re.compile(r"[a-z][a-z0-9+.-]+://")
_NATIVE: Final = ("gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")
_ATTEMPTS: Final = 5


class Entry(NamedTuple):
    """A file in a folder: its name and its size in bytes."""

    name: str
    size: int


class Storage:
    """The files below one location."""

    def __init__(self, location: str | Path) -> None:
        text = str(location)
        self.local: Path | None = None
        if is_url(text):
            self._fs, self._root = _connect(text)
            self.location = text.rstrip("/")
        else:
            self.local = local_path(text).absolute()
            self.location = str(self.local)
            self._fs, self._root = fs.LocalFileSystem(), self.location

    def __reduce__(self) -> tuple[type[Storage], tuple[str]]:
        return Storage, (self.location,)

    def read(self, path: str) -> bytes:
        """The bytes of a file. Raises FileNotFoundError if there is none."""
        with self._errors(), self._fs.open_input_stream(self._full(path), compression=None) as file:
            content: bytes = file.read()
            return content

    def put(self, path: str, content: bytes, durable: bool = True) -> None:
        """Make a file of these bytes visible, whole, in place of an older one. A `durable` one is on disk."""
        if self.local is not None:
            temporary = self._beside(path)
            temporary.write_bytes(content)
            _rename(temporary, self.local / path, durable)
            return
        with self._errors():
            stream = self._fs.open_output_stream(self._full(path), compression=None)
            stream.write(content)
            stream.close()

    def put_file(self, path: str, source: Path) -> None:
        """Move a complete file of this machine to its place in the storage, where it is visible whole."""
        if self.local is not None:
            temporary = self._beside(path)
            shutil.move(source, temporary)
            _rename(temporary, self.local / path)
            return
        with self._errors(), source.open("rb") as content:
            stream = self._fs.open_output_stream(self._full(path), compression=None)
            shutil.copyfileobj(content, stream)
            stream.close()
        source.unlink()

    def move(self, path: str, target: str) -> None:
        if self.local is not None:
            (self.local / target).parent.mkdir(parents=True, exist_ok=True)
        with self._errors():
            self._fs.move(self._full(path), self._full(target))

    def copy_to(self, path: str, target: Path) -> None:
        with (
            self._errors(),
            self._fs.open_input_stream(self._full(path), compression=None) as file,
            target.open("wb") as copy,
        ):
            shutil.copyfileobj(file, copy, 1 << 20)

    def entries(self, folder: str) -> list[Entry]:
        """The files directly in a folder, sorted by name; none if there is no such folder."""
        if self.local is not None:
            try:
                with os.scandir(self.local / folder) as entries:
                    files = [Entry(e.name, e.stat().st_size) for e in entries if e.is_file()]
            except (FileNotFoundError, NotADirectoryError):
                return []
            return sorted(entry for entry in files if not entry.name.startswith("."))
        with self._errors():
            infos = self._fs.get_file_info(fs.FileSelector(self._full(folder), allow_not_found=True))
        return sorted(Entry(info.base_name, info.size) for info in infos if info.type == fs.FileType.File)

    def walk(self, folder: str) -> list[tuple[str, float]]:
        """All files below a folder, as paths with the time of their last change in seconds."""
        with self._errors():
            selector = fs.FileSelector(self._full(folder), allow_not_found=True, recursive=True)
            infos = [info for info in self._fs.get_file_info(selector) if info.type == fs.FileType.File]
        return sorted((info.path[len(self._root) + 1 :], (info.mtime_ns or 0) / 1e9) for info in infos)

    def size(self, path: str) -> int | None:
        """The size of a file in bytes; None if there is none."""
        with self._errors():
            info = self._fs.get_file_info(self._full(path))
        return int(info.size) if info.type == fs.FileType.File else None

    def delete(self, path: str) -> None:
        if self.local is not None:
            (self.local / path).unlink(missing_ok=True)
        elif self.size(path) is not None:
            with self._errors():
                self._fs.delete_file(self._full(path))

    def delete_folder(self, path: str) -> None:
        if self.local is not None:
            shutil.rmtree(self.local / path, ignore_errors=True)
            return
        for file, _ in self.walk(path):
            self.delete(file)

    def exists(self) -> bool:
        with self._errors():
            return bool(self._fs.get_file_info(self._root).type != fs.FileType.NotFound)

    @contextmanager
    def workspace(self, folder: str) -> Iterator[Path]:
        """Yield a new folder for files that `put_file` moves. It lies in the storage if that is a folder."""
        if self.local is None:
            with tempfile.TemporaryDirectory(prefix="precede-lake-") as temporary:
                yield Path(temporary)
            return
        place = self.local / folder / f"work-{secrets.token_hex(6)}"
        place.mkdir(parents=True)
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _full(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    def _beside(self, path: str) -> Path:
        """A hidden temporary name in the folder of a path, which is made if it does not exist."""
        assert self.local is not None
        target = self.local / path
        target.parent.mkdir(parents=True, exist_ok=True)
        return target.with_name(f".{secrets.token_hex(6)}")

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Raise Unavailable, in one line, if an object store fails; FileNotFoundError if a file is missing."""
        try:
            yield
        except (FileNotFoundError, NotADirectoryError) as error:
            raise FileNotFoundError(str(error)) from None
        except OSError as error:
            if self.local is not None:
                raise
            raise Unavailable(f"{self.location}: {str(error).strip().splitlines()[0]}") from None


def is_url(location: str) -> bool:
    """Is this a URL of another storage than the folders of this machine?"""
    return bool(_URL.match(location)) and not location.startswith("file:")


def local_path(location: str) -> Path:
    """Return the path that a path or a `file:` URL means."""
    parts = urlsplit(location)
    return Path(unquote(parts.path)) if parts.scheme == "file" else Path(location)


def joined(base: str | Path, location: str | Path) -> str:
    """Return a location that may be relative to a base: a URL and an absolute path stay as they are."""
    return str(location) if is_url(str(location)) else str(Path(base) / location)


def _connect(url: str) -> tuple[Any, str]:
    """The pyarrow client of a URL, and the root path in it."""
    scheme, _, rest = url.partition("://")
    if not rest.strip("/"):
        raise BadInput(f"{url!r}: expected {scheme}://BUCKET/PATH")
    try:
        if scheme in ("s3", "s3a"):
            return _s3(rest.partition("/")[0]), rest.rstrip("/")
        if scheme in _NATIVE:
            client, root = fs.FileSystem.from_uri(url)
            return client, root.rstrip("/")
        import fsspec  # type: ignore[import-not-found, unused-ignore]

        return fs.PyFileSystem(fs.FSSpecHandler(fsspec.filesystem(scheme))), rest.rstrip("/")
    except ModuleNotFoundError:
        raise BadInput(f"{url!r}: pyarrow has no client for {scheme}, and fsspec is not installed") from None
    except (pa.ArrowException, OSError, ValueError, ImportError) as error:
        raise BadInput(f"{url!r}: {str(error).strip().splitlines()[0]}") from None


def _s3(bucket: str) -> Any:
    """A client for S3 or a server that speaks its protocol.

    Nothing is written in the background: a process that exits with an open stream would hang.
    """
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    options: dict[str, Any] = {"region": region or "us-east-1"}
    if endpoint:
        parts = urlsplit(endpoint)
        options |= {"endpoint_override": parts.netloc or endpoint, "scheme": parts.scheme or "https"}
    elif region is None:
        options["region"] = fs.resolve_s3_region(bucket)
    retry = fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS)
    return fs.S3FileSystem(**options, allow_delayed_open=True, background_writes=False, retry_strategy=retry)


def _rename(temporary: Path, target: Path, durable: bool = True) -> None:
    """Rename a complete file, if `durable` after its bytes have reached the disk."""
    if durable:
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
    temporary.replace(target)
