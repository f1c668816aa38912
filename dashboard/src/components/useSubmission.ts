import { useState } from 'react';

/** The action of a dialog: the dialog closes when it is done, or stays open with the error if it is rejected. */
export function useSubmission(action: () => Promise<unknown>, onClose: () => void) {
  const [isPending, setPending] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const submit = async () => {
    setPending(true);
    setError(null);
    try {
      await action();
      onClose();
    } catch (problem) {
      setError(problem);
    } finally {
      setPending(false);
    }
  };
  return { submit, isPending, error, forgetError: () => setError(null) };
}
