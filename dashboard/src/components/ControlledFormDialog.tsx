import { useId, type ReactNode, type SyntheticEvent } from 'react';

import * as common from '../i18n/common';
import { useText } from '../i18n/language';
import { Button } from './Button';
import { Dialog } from './Dialog';
import { ErrorPanel } from './ErrorPanel';
import styles from './ControlledFormDialog.module.css';

interface Props {
  title: string;
  /** The verb of the main button. */
  action: string;
  isOpen: boolean;
  onClose: () => void;
  onSubmit: () => void;
  isPending: boolean;
  isDisabled?: boolean;
  error?: unknown;
  children: ReactNode;
}

/** A dialog with fields, which stays open and shows the error when its action fails. */
export function ControlledFormDialog({
  title,
  action,
  isOpen,
  onClose,
  onSubmit,
  isPending,
  isDisabled,
  error,
  children,
}: Props) {
  const t = useText(common);
  const id = useId();
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    event.stopPropagation();
    if (!isPending && !isDisabled) onSubmit();
  };
  const actions = (
    <>
      <Button onPress={onClose}>{t.cancel}</Button>
      <Button kind="primary" type="submit" form={id} isDisabled={isPending || isDisabled === true}>
        {isPending ? t.working : action}
      </Button>
    </>
  );
  return (
    <Dialog title={title} isOpen={isOpen} onClose={onClose} actions={actions}>
      <form id={id} className={styles.form} onSubmit={submit} noValidate>
        {children}
        {error ? <ErrorPanel error={error} /> : null}
      </form>
    </Dialog>
  );
}
