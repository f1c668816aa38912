import { useState, type ReactNode } from 'react';

import * as common from '../i18n/common';
import { useText } from '../i18n/language';
import { Button } from './Button';
import { Dialog } from './Dialog';
import { ErrorPanel } from './ErrorPanel';
import { TextField } from './Field';
import { useSubmission } from './useSubmission';

interface Props {
  title: string;
  children: ReactNode;
  /** The verb of the action: "Delete agent". */
  action: string;
  isOpen: boolean;
  onClose: () => void;
  /** Does it; the dialog stays open and shows the error if it is rejected. */
  onConfirm: () => Promise<unknown>;
  /** Text that has to be typed first, for what cannot be undone. */
  typed?: string;
}

export function ConfirmDialog({ title, children, action, isOpen, onClose, onConfirm, typed }: Props) {
  const t = useText(common);
  const [text, setText] = useState('');
  const close = () => {
    setText('');
    submission.forgetError();
    onClose();
  };
  const submission = useSubmission(onConfirm, close);
  const { isPending, error } = submission;
  const actions = (
    <>
      <Button onPress={close}>{t.cancel}</Button>
      <Button
        kind="danger"
        isDisabled={isPending || (typed !== undefined && text.trim() !== typed.trim())}
        onPress={submission.submit}
      >
        {isPending ? t.working : action}
      </Button>
    </>
  );
  return (
    <Dialog title={title} role="alertdialog" isOpen={isOpen} onClose={close} actions={actions}>
      <div>{children}</div>
      {typed !== undefined && <TextField label={t.typeToConfirm(typed)} value={text} onChange={setText} autoComplete="off" />}
      {error !== null && <ErrorPanel error={error} />}
    </Dialog>
  );
}
