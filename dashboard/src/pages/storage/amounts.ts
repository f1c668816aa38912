/** USDC on the networks that every server knows. Other tokens have a name only in the server's settings. */
const USDC = [
  { names: ['base', 'eip155:8453'], address: '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913' },
  { names: ['base-sepolia', 'eip155:84532'], address: '0x036CbD53842c5426634e7929541eC2318f3dCF7e' },
] as const;
const USDC_DECIMALS = 6;

/** Return the address of USDC on a network; undefined where it is not known. */
export function usdcAddress(network: string): string | undefined {
  return USDC.find(({ names }) => names.some((name) => name === network))?.address;
}

export function isUsdc(network: string, asset: string): boolean {
  return usdcAddress(network)?.toLowerCase() === asset.toLowerCase();
}

/** Return an amount in USDC as its smallest units: "0.01" is "10000". Null for what is no such amount. */
export function toUnits(amount: string): string | null {
  const found = /^(\d{1,60})(?:[.,](\d{1,6}))?$/.exec(amount.trim());
  if (!found) return null;
  const units = BigInt(`${found[1]}${(found[2] ?? '').padEnd(USDC_DECIMALS, '0')}`);
  return units > 0n ? units.toString() : null;
}

/** Return the smallest units of USDC as an amount: "10000" is "0.01". */
export function fromUnits(units: string): string {
  if (!/^\d+$/.test(units)) return units;
  const digits = units.padStart(USDC_DECIMALS + 1, '0');
  const fraction = digits.slice(-USDC_DECIMALS).replace(/0+$/, '');
  return `${digits.slice(0, -USDC_DECIMALS)}${fraction && `.${fraction}`}`;
}

/** Return an amount in words: in USDC, or in the smallest units of another token. */
export function describeAmount(network: string, asset: string, units: string, unitsWord: string): string {
  return isUsdc(network, asset) ? `${fromUnits(units)} USDC` : `${units} ${unitsWord}`;
}

/** Return an address or hash shortened in its middle: "0x2096...287C". */
export function shorten(text: string): string {
  return text.length > 16 ? `${text.slice(0, 6)}...${text.slice(-4)}` : text;
}
