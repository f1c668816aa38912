/** A response with an error status, or no response (status 0). `message` is the server's sentence. */
export class ApiError extends Error {
  constructor(
    message: string,
    readonly status: number,
    readonly requestId: string | null = null,
    readonly retryAfterSeconds: number | null = null,
    /** More about an error whose sentence the API fixes, for example what is wrong with a configuration. */
    readonly detail: string | null = null,
    /** The stable name of the error, by which to tell it from others: `docs/reference/errors.md` lists all. */
    readonly code: string | null = null,
    /** The path of the field at fault, such as `mappings.0.port`. */
    readonly field: string | null = null,
  ) {
    super(message);
    this.name = 'ApiError';
  }
}

/** Return the error of a response. The APIs write errors in three forms; anything else becomes its status line. */
export async function readError(response: Response): Promise<ApiError> {
  let message = `${response.status} ${response.statusText}`.trim();
  let faults: string | null = null;
  try {
    const body: unknown = await response.clone().json();
    message = findMessage(body) ?? message;
    faults = findFaults(body);
  } catch {
    // Not JSON, for example the page of a proxy: its status is all that is known.
  }
  const detail = readDetail(response.headers.get('x-error-detail'));
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN);
  return new ApiError(
    message,
    response.status,
    response.headers.get('x-request-id'),
    Number.isFinite(retryAfter) ? retryAfter : null,
    detail === message ? faults : (detail ?? faults),
    response.headers.get('x-error-code'),
    response.headers.get('x-error-field'),
  );
}

function readDetail(header: string | null): string | null {
  try {
    const detail: unknown = JSON.parse(header ?? 'null');
    return typeof detail === 'string' ? detail : null;
  } catch {
    return null;
  }
}

/** Return what is wrong with a template, one fault a line. */
function findFaults(body: unknown): string | null {
  if (typeof body !== 'object' || body === null || !('errors' in body) || !Array.isArray(body.errors)) return null;
  const lines = body.errors.map(
    (fault: { path?: unknown; message?: unknown }) => `${String(fault?.path)}: ${String(fault?.message)}`,
  );
  return lines.join('\n') || null;
}

function findMessage(body: unknown): string | undefined {
  if (typeof body !== 'object' || body === null || !('error' in body)) return undefined;
  const { error } = body;
  if (typeof error === 'string') return error;
  if (typeof error !== 'object' || error === null) return undefined;
  if ('message' in error && typeof error.message === 'string') return error.message;
  return 'details' in error && typeof error.details === 'string' ? error.details : undefined;
}
