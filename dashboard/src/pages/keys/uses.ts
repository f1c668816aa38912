/** Return the number of uses of a key that was typed: null for none, undefined for what is no such number. */
export function parseUses(text: string): number | null | undefined {
  if (!text.trim()) return null;
  const uses = Number(text);
  return Number.isInteger(uses) && uses >= 1 && uses < 2 ** 31 ? uses : undefined;
}
