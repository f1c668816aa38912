/** Return the path to open after sign-in, from the address. Paths of this server only, as the browser reads them. */
export function safePath(path: unknown, origin = location.origin): string | undefined {
  if (typeof path !== 'string' || !path.startsWith('/') || !URL.canParse(path, origin)) return undefined;
  return new URL(path, origin).origin === origin ? path : undefined;
}
