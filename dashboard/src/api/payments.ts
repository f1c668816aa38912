import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';

import { api, body } from './client';
import type { components } from './schema';
import { inner } from './storage';

export type Instruction = components['schemas']['PaymentInstructionRecord'];
export type Requirement = Required<components['schemas']['PaymentRequirementRecord']>;
export type Payment = components['schemas']['PaymentRecord'];
export type PaymentState = Payment['state'];
export type PaymentTotal = components['schemas']['PaymentTotalRecord'];

export interface InstructionFields {
  readonly name: string;
  readonly description: string;
  readonly payment_requirements: Requirement[];
}

const PAGE = 50;
const at = (id: string) => ({ params: { path: { id } } });
const atCid = (id: string, cid: string) => ({ params: { path: { id, cid } } });

export const instructionsQuery = infiniteQueryOptions({
  queryKey: ['payments', 'instructions'],
  initialPageParam: '',
  queryFn: ({ signal, pageParam }) =>
    inner(
      api.GET('/v3/x402/payment_instructions', {
        params: { query: { limit: PAGE, ...(pageParam && { pageToken: pageParam }) } },
        signal,
      }),
    ),
  getNextPageParam: ({ next_page_token }) => next_page_token || undefined,
});

export const instructionCidsQuery = (id: string) =>
  infiniteQueryOptions({
    queryKey: ['payments', 'instructions', id, 'cids'],
    initialPageParam: '',
    queryFn: ({ signal, pageParam }) =>
      inner(
        api.GET('/v3/x402/payment_instructions/{id}/cids', {
          params: { path: { id }, query: { limit: PAGE, ...(pageParam && { pageToken: pageParam }) } },
          signal,
        }),
      ),
    getNextPageParam: ({ next_page_token }) => next_page_token || undefined,
  });

export const createInstruction = (fields: InstructionFields) => inner(api.POST('/v3/x402/payment_instructions', { body: fields }));

export const changeInstruction = (id: string, fields: InstructionFields) =>
  inner(api.PATCH('/v3/x402/payment_instructions/{id}', { ...at(id), body: fields }));

export const deleteInstruction = (id: string) => body(api.DELETE('/v3/x402/payment_instructions/{id}', at(id)));

/** Attach an instruction to CIDs, one after the other; what was attached before an error stays. */
export async function attachCids(id: string, cids: readonly string[]): Promise<void> {
  for (const cid of cids) await body(api.PUT('/v3/x402/payment_instructions/{id}/cids/{cid}', atCid(id, cid)));
}

export const detachCid = (id: string, cid: string) =>
  body(api.DELETE('/v3/x402/payment_instructions/{id}/cids/{cid}', atCid(id, cid)));

export const paymentsQuery = (state: PaymentState | '') =>
  infiniteQueryOptions({
    queryKey: ['payments', 'received', state],
    initialPageParam: '',
    queryFn: ({ signal, pageParam }) =>
      inner(
        api.GET('/v3/x402/payments', {
          params: { query: { limit: PAGE, ...(state && { state }), ...(pageParam && { pageToken: pageParam }) } },
          signal,
        }),
      ),
    getNextPageParam: ({ next_page_token }) => next_page_token || undefined,
  });

export const paymentTotalsQuery = queryOptions({
  queryKey: ['payments', 'totals'],
  queryFn: ({ signal }) => inner(api.GET('/v3/x402/payments/totals', { signal })),
});
