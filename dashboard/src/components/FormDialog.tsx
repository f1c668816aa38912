import { useState, type ReactNode, type SyntheticEvent } from 'react';

import * as common from '../i18n/common';
import { useText } from '../i18n/language';
import { Button } from './Button';
import { Dialog } from './Dialog';
import { ErrorPanel } from './ErrorPanel';
import styles from './FormDialog.module.css';

interface Props {
  title: string;
  /** The verb of the action: "Create secret". */
  action: string;
  onClose: () => void;
  /** Does it; the dialog closes then, or stays open and shows the error if it is rejected. */
  onSubmit: () => Promise<unknown>;
  isDisabled?: boolean;
  /** The fields. */
  children: ReactNode;
}

/** A form in a dialog. Render it only while it is open, so that it begins with empty fields. */
export function FormDialog({ title, action, onClose, onSubmit, isDisabled = false, children }: Props) {
  const t = useText(common);
  const [isPending, setPending] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const submit = async (event: SyntheticEvent) => {
    event.preventDefault();
    event.stopPropagation();
    if (isPending || isDisabled) return;
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
    <Dialog title={title} isOpen onClose={onClose}>
      <form className={styles.form} onSubmit={(event) => void submit(event)} noValidate>
        {children}
        {error !== null && <ErrorPanel error={error} />}
        <div className={styles.actions}>
          <Button onPress={onClose}>{t.cancel}</Button>
          <Button kind="primary" type="submit" isDisabled={isPending || isDisabled}>
            {isPending ? t.working : action}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}
