import { X } from 'lucide-react';
import type { ReactNode } from 'react';
import { Dialog as AriaDialog, Heading, Modal, ModalOverlay } from 'react-aria-components';

import * as common from '../i18n/common';
import { useText } from '../i18n/language';
import { Button } from './Button';
import styles from './Dialog.module.css';

interface Props {
  title: string;
  isOpen: boolean;
  onClose: () => void;
  children: ReactNode;
  /** Buttons, the main one last. */
  actions?: ReactNode;
  role?: 'dialog' | 'alertdialog';
}

export function Dialog({ title, isOpen, onClose, children, actions, role = 'dialog' }: Props) {
  const t = useText(common);
  return (
    <ModalOverlay
      className={styles.overlay!}
      isOpen={isOpen}
      isDismissable={role === 'dialog'}
      onOpenChange={(open) => {
        if (!open) onClose();
      }}
    >
      <Modal className={styles.modal!}>
        <AriaDialog className={styles.dialog!} role={role}>
          <header className={styles.header}>
            <Heading slot="title" level={2}>
              {title}
            </Heading>
            <Button kind="quiet" iconOnly aria-label={t.close} onPress={onClose}>
              <X size={18} aria-hidden />
            </Button>
          </header>
          <div className={styles.body}>{children}</div>
          {actions && <footer className={styles.actions}>{actions}</footer>}
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  );
}
