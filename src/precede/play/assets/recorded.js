// A world that was recorded: its frames come from a data file beside the page, and no server is needed.
"use strict";

class RecordedWorld {
  // Loads the frames of a recording when it is first opened.
  async open(key) {
    if (!window.precedeRecordings?.[key]) {
      const script = document.createElement("script");
      script.src = `data/${key}.js`;
      await new Promise((done, failed) => {
        script.onload = done;
        script.onerror = () => failed(new Error(`data/${key}.js cannot be read`));
        document.head.append(script);
      });
    }
    this.key = key;
    this.recording = window.precedeRecordings[key];
  }

  async ask(request) {
    if (request.do === "advance") return { frame: this.advance(request.us) };
    const lessons = window.precedeWorlds;
    const wanted = request.lesson || this.key || location.hash.slice(1);
    await this.open(lessons.some(({ key }) => key === wanted) ? wanted : lessons[0].key);
    this.place = this.now = 0;
    return { hello: { ...this.recording.hello, lessons, own: false }, frame: this.advance(0) };
  }

  // All frames until an instant as one: their events together, and the state after the last one.
  advance(us) {
    const { frames } = this.recording;
    this.now = Math.min(this.now + us, frames[frames.length - 1].now);
    const passed = [];
    while (this.place < frames.length && frames[this.place].now <= this.now) passed.push(frames[this.place++]);
    const last = passed.length ? passed[passed.length - 1] : frames[Math.max(0, this.place - 1)];
    const side = (name) => ({
      ...last.sides[name],
      events: passed.flatMap((frame) => frame.sides[name].events),
      new_violations: passed.flatMap((frame) => frame.sides[name].new_violations),
      texts: Object.assign({}, ...passed.map((frame) => frame.sides[name].texts)),
    });
    return { ...last, now: this.now, ended: this.place >= frames.length, sides: { unordered: side("unordered"), ordered: side("ordered") } };
  }
}

document.body.classList.add("recorded");
document.querySelector("#lesson strong").textContent = "This is a recording: press Play. In precede play you do it yourself:";
document.querySelector("#do legend").textContent = "A recording";
