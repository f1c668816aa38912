import { useState } from 'react';

const STORAGE = 'roost.start';
export type StartStep = 'model' | 'phone';
export type StartState = 'first' | 'shown' | 'hidden';

/** Return what this browser remembers of the first steps of a tenant: seen for the first time, shown again, or hidden. */
export function readStart(text: string | null): { state: StartState; skipped: readonly StartStep[] } {
  try {
    const { state, skipped } = Object(JSON.parse(text ?? '')) as Record<string, unknown>;
    const known = (Array.isArray(skipped) ? skipped : []).filter((one): one is StartStep => one === 'model' || one === 'phone');
    return { state: state === 'shown' || state === 'hidden' ? state : 'first', skipped: known };
  } catch {
    return { state: 'first', skipped: [] };
  }
}

/** The first steps of a tenant, which can be skipped one by one, hidden, and shown again. */
export function useStart(tenantId: string) {
  const key = `${STORAGE}.${tenantId}`;
  const [start, setStart] = useState(() => readStart(localStorage.getItem(key)));
  const keep = (next: typeof start) => {
    localStorage.setItem(key, JSON.stringify(next));
    setStart(next);
  };
  return {
    ...start,
    hide: () => keep({ state: 'hidden', skipped: [] }),
    show: () => keep({ state: 'shown', skipped: [] }),
    skip: (step: StartStep) => keep({ ...start, skipped: [...start.skipped.filter((one) => one !== step), step] }),
  };
}
