const UNITS = ['B', 'KB', 'MB', 'GB', 'TB'];

/** Return a number of bytes in words: "1.5 MB". */
export function formatBytes(bytes: number, language: string): string {
  const unit = Math.min(UNITS.length - 1, bytes < 1000 ? 0 : Math.floor(Math.log10(bytes) / 3));
  const digits = new Intl.NumberFormat(language, { maximumFractionDigits: unit === 0 ? 0 : 1 });
  return `${digits.format(bytes / 1000 ** unit)} ${UNITS[unit]}`;
}
