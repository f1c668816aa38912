import { useId, useState, type ReactNode, type SyntheticEvent } from 'react';

import * as common from '../i18n/common';
import { useText } from '../i18n/language';
import { Button } from './Button';
import { ConfirmDialog } from './ConfirmDialog';
import { Dialog } from './Dialog';
import { ErrorPanel } from './ErrorPanel';
import styles from './FormDialog.module.css';
import { useSubmission } from './useSubmission';

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
  const t = useText(common);
  const id = useId();
  const { submit, isPending, error } = useSubmission(onSubmit, onClose);
  const [isAsking, setAsking] = useState(false);
  const begin = (event: SyntheticEvent) => {
    event.preventDefault();
    event.stopPropagation();
    if (isPending || isDisabled) return;
    if (question) setAsking(true);
    else void submit();
  };
  const actions = (
    <>
      <Button onPress={onClose}>{t.cancel}</Button>
      <Button kind="primary" type="submit" form={id} isDisabled={isPending || isDisabled}>
        {isPending ? t.working : action}
      </Button>
    </>
  );
  return (
    <>
      <Dialog title={title} isOpen onClose={onClose} actions={actions}>
        <form id={id} className={styles.form} onSubmit={begin} noValidate>
          {children}
          {error ? <ErrorPanel error={error} /> : null}
        </form>
      </Dialog>
      {question && (
        <ConfirmDialog title={title} action={action} isOpen={isAsking} onClose={() => setAsking(false)} onConfirm={submit}>
          {question}
        </ConfirmDialog>
      )}
    </>
  );
}
