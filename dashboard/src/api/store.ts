/** A value that changes outside React. Components show it by `useSyncExternalStore(store.watch, store.state)`. */
export class Store<T> {
  #value: T;
  #frame = 0;
  readonly #watchers = new Set<() => void>();

  constructor(value: T) {
    this.#value = value;
  }

  readonly state = (): T => this.#value;

  /** Call `watcher` after each change. Returns the function that ends it. */
  readonly watch = (watcher: () => void): (() => void) => {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  };

  set(value: T): void {
    if (Object.is(this.#value, value)) return;
    this.#value = value;
    this.#notify();
  }

  /** Change the value now, but tell the watchers once per frame: tokens of a model come faster. */
  setBeforeNextFrame(value: T): void {
    this.#value = value;
    this.#frame ||= requestAnimationFrame(() => this.#notify());
  }

  #notify(): void {
    if (this.#frame) cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    for (const watcher of this.#watchers) watcher();
  }
}
