import type { Requirement } from '../../api/payments';
import { fromUnits, isUsdc, toUnits, usdcAddress } from './amounts';

/** Networks with USDC, and any other that the server knows. */
export const NETWORKS = ['base', 'base-sepolia', 'other'] as const;

/** A way to pay as it is typed. `network` and `asset` count for another network, whose amount is in smallest units. */
export interface RequirementDraft {
  readonly choice: (typeof NETWORKS)[number];
  readonly network: string;
  readonly asset: string;
  readonly payTo: string;
  readonly amount: string;
  readonly description: string;
}

export const NEW_DRAFT: RequirementDraft = { choice: 'base', network: '', asset: '', payTo: '', amount: '', description: '' };

export const isOther = ({ choice }: RequirementDraft): boolean => choice === 'other';

/** Return the draft of a requirement that exists. */
export function requirementDraft({ network, asset, pay_to, amount, description = '' }: RequirementOfServer): RequirementDraft {
  const choice = NETWORKS.find((name) => name === network);
  const common = { network, asset, payTo: pay_to, description };
  return choice !== undefined && isUsdc(network, asset)
    ? { ...common, choice, amount: fromUnits(amount) }
    : { ...common, choice: 'other', amount };
}

type RequirementOfServer = Omit<Requirement, 'description'> & { readonly description?: string };

/** Return the requirement of a draft; null if it is incomplete or its amount is none. */
export function readDraft(draft: RequirementDraft): Requirement | null {
  const network = isOther(draft) ? draft.network.trim() : draft.choice;
  const asset = isOther(draft) ? draft.asset.trim() : usdcAddress(draft.choice);
  const amount = isOther(draft) ? /^[1-9]\d{0,77}$/.exec(draft.amount.trim())?.[0] : toUnits(draft.amount);
  const pay_to = draft.payTo.trim();
  return network && asset && amount && pay_to ? { network, asset, amount, pay_to, description: draft.description } : null;
}
