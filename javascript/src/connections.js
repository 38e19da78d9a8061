// WebSocket connections to gateways, opened again when they break.

const FIRST_WAIT = 100;
const LONGEST_WAIT = 5_000;
const MOST_UNSENT = 1 << 20;
const CLOSE_WAIT = 1_000;

/** The WebSocket of this platform: the browser's, or that of the package `ws` in Node.js. */
async function webSocketClass() {
  return globalThis.WebSocket ?? (await import("ws")).WebSocket;
}

/** Keeps one connection to each URL. `links` is told of connections and frames. */
export class Connections {
  constructor(urls, links) {
    this.links = links;
    this.open = new Set();
    this.stopped = false;
    this.waits = new Set();
    this.running = urls.map((url) => this.keep(url));
  }

  async keep(url) {
    const WebSocket = await webSocketClass();
    let wait = FIRST_WAIT;
    while (!this.stopped) {
      if (await this.carry(new WebSocket(url))) wait = FIRST_WAIT;
      if (this.stopped) return;
      await this.pause(wait);
      wait = Math.min(2 * wait, LONGEST_WAIT);
    }
  }

  /** Wait before the next attempt, unless `stop` ends it. */
  pause(wait) {
    return new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        this.waits.delete(end);
        resolve();
      };
      const timer = setTimeout(end, wait);
      this.waits.add(end);
    });
  }

  /** Carry frames until the connection ends. Resolves to true if it was ever open. */
  carry(socket) {
    socket.binaryType = "arraybuffer";
    this.open.add(socket);
    const connection = {
      send: (frame) => {
        if (socket.readyState === 1 && socket.bufferedAmount < MOST_UNSENT) socket.send(frame);
      },
    };
    return new Promise((resolve) => {
      let opened = false;
      socket.onopen = () => {
        opened = true;
        this.links.connected(connection);
      };
      socket.onmessage = ({ data }) => {
        if (typeof data === "string") socket.close();
        else this.links.frame(new Uint8Array(data), connection);
      };
      socket.onerror = () => {}; // onclose follows
      socket.onclose = () => {
        this.open.delete(socket);
        if (opened && !this.stopped) this.links.disconnected(connection);
        resolve(opened);
      };
    });
  }

  /** Close all connections. A gateway that does not answer the closing handshake is waited for until `CLOSE_WAIT`. */
  async stop() {
    this.stopped = true;
    for (const socket of this.open) socket.close();
    for (const end of this.waits) end();
    const overdue = setTimeout(() => {
      for (const socket of this.open) {
        socket.terminate?.(); // in Node.js; a browser ends the connection itself
        socket.onclose();
      }
    }, CLOSE_WAIT);
    await Promise.all(this.running);
    clearTimeout(overdue);
  }
}
