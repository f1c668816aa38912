import { useState, type ReactNode } from 'react';

import { ConfirmDialog } from './ConfirmDialog';
import { ControlledFormDialog } from './ControlledFormDialog';

interface Props {
  title: string;
  /** The verb of the action: "Create secret". */
  action: string;
  onClose: () => void;
  /** Does it; the dialog closes then, or stays open and shows the error if it is rejected. */
  onSubmit: () => Promise<unknown>;
  isDisabled?: boolean;
  /** What the change means for others; it is asked before it is done. Nothing is asked if this is empty. */
  question?: string;
  /** The fields. */
  children: ReactNode;
}

/** A form in a dialog. Render it only while it is open, so that it begins with empty fields. */
export function FormDialog({ title, action, onClose, onSubmit, isDisabled = false, question, children }: Props) {
  const [isPending, setPending] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [isAsking, setAsking] = useState(false);
  const submit = async () => {
    setPending(true);
    setError(null);
    try {
      await onSubmit();
      onClose();
    } catch (problem) {
      setError(problem);
      setPending(false);
    }
  };
  return (
    <>
      <ControlledFormDialog
        title={title}
        action={action}
        isOpen
        onClose={onClose}
        onSubmit={() => (question ? setAsking(true) : void submit())}
        isPending={isPending}
        isDisabled={isDisabled}
        error={error}
      >
        {children}
      </ControlledFormDialog>
      {question && (
        <ConfirmDialog title={title} action={action} isOpen={isAsking} onClose={() => setAsking(false)} onConfirm={submit}>
          {question}
        </ConfirmDialog>
      )}
    </>
  );
}
