import { DefaultHttpStack, DetailedError, Upload, type HttpStack } from 'tus-js-client';

import { csrfHeader, sendTo } from './client';
import { ApiError } from './errors';
import type { Network } from './storage';
import { Store } from './store';

export type UploadState = 'sending' | 'paused' | 'done' | 'failed';
export interface UploadItem {
  readonly id: number;
  readonly name: string;
  readonly size: number;
  readonly sent: number;
  readonly state: UploadState;
  readonly error: unknown;
  readonly pause?: () => void;
  readonly resume?: () => void;
  readonly remove: () => void;
}
export interface UploadTarget {
  readonly network: Network;
  readonly group: string;
}

const RETRY_DELAYS_MS = [500, 2_000, 5_000, 15_000];
const ENDPOINT = '/v3/files';

/** Sends the parts of an upload to this host, whose session they need, whatever host the server names. */
class SameOriginStack implements HttpStack {
  readonly #stack = new DefaultHttpStack({});

  createRequest(method: string, url: string) {
    return this.#stack.createRequest(method, localUrl(url));
  }

  getName(): string {
    return 'SameOriginStack';
  }
}

/** Return the address at this host of an address of the server. */
export function localUrl(url: string): string {
  const { pathname, search } = new URL(url, location.origin);
  return location.origin + pathname + search;
}

/** The uploads of this window. They go on while other pages are open; a reload resumes those that are chosen again. */
export class UploadList extends Store<readonly UploadItem[]> {
  #lastId = 0;
  #onDone: () => void = () => undefined;

  constructor() {
    super([]);
  }

  /** Call `listener` after each finished upload. */
  whenDone(listener: () => void): void {
    this.#onDone = listener;
  }

  /** Upload files, each in resumable parts. */
  addFiles(files: readonly File[], target: UploadTarget): void {
    for (const file of files) this.#addFile(file, target);
  }

  #addFile(file: File, target: UploadTarget): void {
    const id = this.#add(file.name, file.size);
    const upload = new Upload(file, {
      endpoint: location.origin + ENDPOINT,
      httpStack: new SameOriginStack(),
      headers: csrfHeader(),
      retryDelays: RETRY_DELAYS_MS,
      removeFingerprintOnSuccess: true,
      metadata: {
        filename: file.name,
        network: target.network,
        ...(file.type && { filetype: file.type }),
        ...(target.group && { group_id: target.group }),
      },
      onProgress: (sent) => this.#change(id, { sent }),
      onSuccess: () => this.#finish(id),
      onError: (error) => this.#change(id, { state: 'failed', error: uploadError(error) }),
    });
    const start = async () => {
      this.#change(id, { state: 'sending', error: null });
      const [previous] = await upload.findPreviousUploads();
      if (previous && upload.url === null) upload.resumeFromPreviousUpload(previous);
      upload.start();
    };
    this.#change(id, {
      pause: () => {
        void upload.abort();
        this.#change(id, { state: 'paused' });
      },
      resume: () => void start(),
      remove: () => {
        if (this.#find(id)?.state !== 'done') void upload.abort(upload.url !== null).catch(() => undefined);
        this.#remove(id);
      },
    });
    void start();
  }

  /** Upload the files of one folder as one form, because a folder is published at once. */
  addFolder(files: readonly File[], target: UploadTarget): void {
    const size = files.reduce((sum, file) => sum + file.size, 0);
    const id = this.#add(files[0]!.webkitRelativePath.split('/')[0]!, size);
    const abort = new AbortController();
    const send = async () => {
      this.#change(id, { state: 'sending', error: null });
      const form = new FormData();
      form.append('network', target.network);
      if (target.group) form.append('group_id', target.group);
      for (const file of files) form.append('file', file, file.webkitRelativePath);
      try {
        await sendTo(ENDPOINT, { method: 'POST', body: form, signal: abort.signal });
        this.#finish(id);
      } catch (error) {
        if (!abort.signal.aborted) this.#change(id, { state: 'failed', error });
      }
    };
    this.#change(id, {
      resume: () => void send(),
      remove: () => {
        abort.abort();
        this.#remove(id);
      },
    });
    void send();
  }

  #add(name: string, size: number): number {
    this.#lastId += 1;
    const id = this.#lastId;
    this.set([...this.state(), { id, name, size, sent: 0, state: 'sending', error: null, remove: () => undefined }]);
    return id;
  }

  #find(id: number): UploadItem | undefined {
    return this.state().find((item) => item.id === id);
  }

  #change(id: number, change: Partial<UploadItem>): void {
    this.set(this.state().map((item) => (item.id === id ? { ...item, ...change } : item)));
  }

  #finish(id: number): void {
    this.#change(id, { state: 'done', sent: this.#find(id)?.size ?? 0 });
    this.#onDone();
  }

  #remove(id: number): void {
    this.set(this.state().filter((item) => item.id !== id));
  }
}

/** Return the server's words of a failed request of an upload. */
function uploadError(error: Error | DetailedError): ApiError {
  if (!(error instanceof DetailedError) || !error.originalResponse) return new ApiError('', 0);
  const response = error.originalResponse;
  let message = `${response.getStatus()}`;
  try {
    const { error: words } = JSON.parse(response.getBody()) as { error?: string | { message?: string } };
    message = (typeof words === 'string' ? words : words?.message) ?? message;
  } catch {
    // TUS answers plain text.
    message = response.getBody().slice(0, 300) || message;
  }
  const [requestId, code, field] = ['X-Request-Id', 'X-Error-Code', 'X-Error-Field'].map((name) => response.getHeader(name) ?? null);
  return new ApiError(message, response.getStatus(), requestId, null, null, code, field);
}

export const uploads = new UploadList();
