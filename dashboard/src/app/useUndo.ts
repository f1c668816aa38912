import { useQueryClient } from '@tanstack/react-query';

import { showToast } from '../components/Toast';
import * as common from '../i18n/common';
import { useText } from '../i18n/language';

/** Return a function that says what was done, with a button that restores it. Only for what can be restored exactly. */
export function useUndo(): (text: string, restore: () => Promise<unknown>) => void {
  const t = useText(common);
  const queries = useQueryClient();
  const undo = async (restore: () => Promise<unknown>) => {
    try {
      await restore();
      showToast(t.undone);
    } catch (error) {
      showToast(t.notUndone(error instanceof Error ? error.message : ''));
    }
    await queries.invalidateQueries();
  };
  return (text, restore) => showToast(text, { label: t.undo, run: () => void undo(restore) });
}
