import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';

import type { StoredText } from '../api/client';
import { ApiError } from '../api/errors';

interface Options {
  /** The stored text as it was loaded last. */
  stored: StoredText;
  /** Load the stored text again; `stored` is then the new one. */
  load: () => Promise<StoredText>;
  /** Replace the version with that tag, whichever it is for null. Raises ApiError 412 for another version. */
  write: (text: string, etag: string | null) => Promise<unknown>;
  onSaved: () => void;
}

interface Draft {
  readonly text: string;
  /** The stored text that it began with. */
  readonly base: StoredText;
}

/** A stored text that is edited while others may change it, too: theirs is never replaced unseen. */
export function useDraft({ stored, load, write, onSaved }: Options) {
  const [draft, setDraft] = useState<Draft | null>(null);
  const [saved, setSaved] = useState<{ text: string; over: string } | null>(null);
  const present = saved?.over === stored.text ? { text: saved.text, etag: null } : stored; // until what was saved is loaded
  const isChanged = draft !== null && draft.text !== draft.base.text;
  /** Write unless others changed the text. Returns the text that was replaced, null for theirs, which is kept. */
  const replace = async ({ text, base }: Draft): Promise<string | null> => {
    if (base.etag !== null && (await isWritten(write(text, base.etag)))) return base.text;
    const found = await load(); // a new version may have the same text
    if (found.text !== base.text && found.text !== text) return null;
    await write(text, found.etag);
    return found.text;
  };
  const save = useMutation({
    mutationFn: async (started: Draft) => {
      const over = await replace(started);
      if (over === null) {
        setSaved(null); // `stored` is what others wrote now, and so `conflict` shows it
        return;
      }
      const { text } = started;
      setSaved({ text, over });
      setDraft((now) => (now === null || now.text === text ? null : { ...now, base: { text, etag: null } })); // typing goes on
      onSaved();
    },
  });
  const differs = isChanged && present.text !== draft.base.text && present.text !== draft.text;
  return {
    text: draft?.text ?? present.text,
    isChanged,
    /** What is stored now and was when the editing began, if they differ. */
    conflict: differs ? { base: draft.base.text, theirs: present.text } : null,
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

/** Wait for a write; return false if the version to replace was another one. */
async function isWritten(writing: Promise<unknown>): Promise<boolean> {
  try {
    await writing;
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.status === 412) return false;
    throw error;
  }
}
