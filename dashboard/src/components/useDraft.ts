import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';

interface Options {
  /** The stored text as it was loaded last. */
  stored: string;
  /** Load the stored text again; `stored` is then the new one. */
  load: () => Promise<string>;
  write: (text: string) => Promise<unknown>;
  onSaved: () => void;
}

interface Draft {
  readonly text: string;
  /** The stored text that it began with. */
  readonly base: string;
}

/** A stored text that is edited while others may change it, too: theirs is never replaced unseen. */
export function useDraft({ stored, load, write, onSaved }: Options) {
  const [draft, setDraft] = useState<Draft | null>(null);
  const [saved, setSaved] = useState<{ text: string; over: string } | null>(null);
  const present = saved?.over === stored ? saved.text : stored; // until what was saved is loaded
  const isChanged = draft !== null && draft.text !== draft.base;
  const save = useMutation({
    mutationFn: async ({ text, base }: Draft) => {
      const found = await load();
      if (found !== base && found !== text) {
        setSaved(null); // `stored` is what others wrote now, and so `conflict` shows it
        return;
      }
      await write(text);
      setSaved({ text, over: found });
      setDraft((now) => (now === null || now.text === text ? null : { ...now, base: text })); // typing goes on meanwhile
      onSaved();
    },
  });
  return {
    text: draft?.text ?? present,
    isChanged,
    /** What is stored now and was when the editing began, if they differ. */
    conflict: isChanged && present !== draft.base && present !== draft.text ? { base: draft.base, theirs: present } : null,
    change: (text: string) => setDraft({ text, base: draft?.base ?? present }),
    discard: () => {
      setDraft(null);
      save.reset();
    },
    /** Accept that saving replaces what others stored meanwhile. */
    keepMine: () => setDraft(draft && { ...draft, base: present }),
    save: () => {
      if (isChanged && !save.isPending) save.mutate(draft);
    },
    isSaving: save.isPending,
    error: save.error,
    forgetError: save.reset,
  };
}
