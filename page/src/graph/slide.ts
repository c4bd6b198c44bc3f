// Large graphs on slow drawing: while the camera moves, the last picture is moved instead of drawn anew.
import type Graph from "graphology";
import Sigma from "sigma";
import type { Settings } from "sigma/settings";
import type { CameraState } from "sigma/types";
import { placePicture } from "./geometry";

const LARGE = 2000; // nodes and edges from which the time of a drawing is measured
const SLOW = 14; // milliseconds for one drawing: more is less than 50 a second beside all else
const REST = 160; // milliseconds without a movement until it is drawn anew
const HELD = 800; // the same while the pointer is held down: it may only be slow

interface Picture {
  canvas: HTMLCanvasElement;
  camera: CameraState | null;
}

/** Sigma that slides a picture of itself while the camera moves, where drawing is slow. */
export class SlidingSigma extends Sigma {
  private readonly here: Picture;
  private readonly whole: Picture;
  private slow = false;
  private rest = 0;
  private sliding = false;
  background = "#fff";

  constructor(graph: Graph, container: HTMLElement, settings: Partial<Settings>) {
    super(graph, container, settings);
    this.here = makePicture(container);
    this.whole = makePicture(container); // beneath the other: it is blurred where it is enlarged
  }
  override scheduleRender(): this {
    const taken = this.here?.camera;
    if (!this.slow || !taken || sameCamera(taken, this.getCamera().getState())) return super.scheduleRender();
    this.slide();
    clearTimeout(this.rest);
    const wait = this.getMouseCaptor().isMouseDown ? HELD : REST;
    this.rest = window.setTimeout(() => super.scheduleRender(), wait);
    return this;
  }
  /** Starts to measure drawings; called when every layer is there. */
  watch(): void {
    let began = 0;
    this.on("beforeRender", () => void (began = performance.now()));
    this.on("afterRender", () => {
      const large = this.getGraph().order + this.getGraph().size >= LARGE;
      this.slow = large && this.finish() - began > SLOW;
      if (this.slow) this.keepPictures(this.here, this.whole);
      else this.here.camera = this.whole.camera = null;
      this.show(false);
    });
  }
  override kill(): void {
    clearTimeout(this.rest);
    this.here.canvas.remove();
    this.whole.canvas.remove();
    super.kill();
  }

  /** Waits until everything is drawn, by reading one pixel; returns the time. */
  private finish(): number {
    for (const layer of [this.getCanvases().edges, this.getCanvases().nodes]) {
      const gl = layer?.getContext("webgl2");
      gl?.bindFramebuffer(gl.FRAMEBUFFER, null);
      gl?.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, new Uint8Array(4));
    }
    return performance.now();
  }
  private keepPictures(here: Picture, whole: Picture): void {
    const camera = this.getCamera().getState();
    this.copyTo(here, camera);
    const wider = !whole.camera || camera.ratio >= Math.min(1, whole.camera.ratio);
    if (wider) this.copyTo(whole, camera);
  }
  private copyTo(picture: Picture, camera: CameraState): void {
    const layers = this.getCanvases();
    const { width, height } = layers.nodes!;
    const { canvas } = picture;
    [canvas.width, canvas.height] = [width, height];
    const { width: wide, height: tall } = this.getDimensions();
    [canvas.style.width, canvas.style.height] = [`${wide}px`, `${tall}px`];
    const context = canvas.getContext("2d", { alpha: false })!;
    context.fillStyle = this.background;
    context.fillRect(0, 0, width, height);
    for (const name of ["regions", "edges", "nodes", "labels", "hovers"])
      if (layers[name]) context.drawImage(layers[name], 0, 0, width, height);
    picture.camera = camera;
  }
  private slide(): void {
    for (const picture of [this.whole, this.here]) {
      if (!picture.camera) continue;
      const cameraAt = (cameraState: CameraState) => this.framedGraphToViewport({ x: 0.5, y: 0.5 }, { cameraState });
      const { scale, x, y } = placePicture(picture.camera, this.getCamera().getState(), cameraAt);
      picture.canvas.style.transform = `translate(${x}px, ${y}px) scale(${scale})`;
    }
    this.show(true);
  }
  private show(sliding: boolean): void {
    if (sliding === this.sliding) return;
    this.sliding = sliding;
    this.getContainer().classList.toggle("sliding", sliding);
  }
}

const sameCamera = (a: CameraState, b: CameraState): boolean => a.x === b.x && a.y === b.y && a.ratio === b.ratio;

function makePicture(container: HTMLElement): Picture {
  const canvas = document.createElement("canvas");
  canvas.className = "picture";
  canvas.setAttribute("aria-hidden", "true");
  container.prepend(canvas);
  return { canvas, camera: null };
}
