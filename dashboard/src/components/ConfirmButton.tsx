import { useState, type ReactNode } from 'react';

import { Button } from './Button';
import { ConfirmDialog } from './ConfirmDialog';

interface Props {
  /** The verb on the button: "Remove". */
  action: string;
  /** The verb with its object: "Remove example.com". */
  title: string;
  /** What the action means; nothing is asked if this is empty. */
  children: ReactNode;
  onConfirm: () => Promise<unknown>;
  /** Text that has to be typed first, for what cannot be undone. */
  typed?: string;
  kind?: 'primary' | 'plain';
  isDisabled?: boolean;
}

/** A button whose action a dialog asks to confirm. */
export function ConfirmButton({ action, title, kind = 'plain', isDisabled = false, ...rest }: Props) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <Button
        kind={kind}
        isDisabled={isDisabled}
        aria-label={title}
        onPress={() => (rest.children ? setOpen(true) : void rest.onConfirm().catch(() => undefined)) /* its mutation shows it */}
      >
        {action}
      </Button>
      <ConfirmDialog action={action} title={title} isOpen={isOpen} onClose={() => setOpen(false)} {...rest} />
    </>
  );
}
