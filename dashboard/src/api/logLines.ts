import type { components } from './schema';

export const LEVELS = ['TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL'] as const satisfies readonly LogLevel[];
export type LogLine = components['schemas']['LogMessageRecord'] & { readonly id: number };
export type LogLevel = LogLine['level'];
/** Lines that a new connection repeats at most. */
export const REPLAYED_LINES = 100;

/** Return the lines without those that a new connection repeats: the server begins with the last 100. */
export function withoutReplay<T extends { timestamp: string; message: string }>(
  known: readonly T[],
  next: readonly T[],
): readonly T[] {
  const key = ({ timestamp, message }: T) => `${timestamp} ${message}`;
  const seen = new Set(known.slice(-2 * REPLAYED_LINES).map(key));
  return next.filter((line) => !seen.has(key(line)));
}

/** Return the lines of a level and above that contain a text, in any case. */
export function filterLines(lines: readonly LogLine[], level: LogLevel, text: string): readonly LogLine[] {
  const wanted = text.trim().toLowerCase();
  const lowest = LEVELS.indexOf(level);
  return lines.filter(
    (line) => LEVELS.indexOf(line.level) >= lowest && (!wanted || `${line.source} ${line.message}`.toLowerCase().includes(wanted)),
  );
}
