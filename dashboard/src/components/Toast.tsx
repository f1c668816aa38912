import { X } from 'lucide-react';
import { useSyncExternalStore } from 'react';

import { Store } from '../api/store';
import * as common from '../i18n/common';
import { useText } from '../i18n/language';
import { Button } from './Button';
import styles from './Toast.module.css';

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly action: ToastAction | null;
}

interface ToastAction {
  readonly label: string;
  readonly run: () => void;
}

const SHOWN_MS = 6_000;
const SHOWN_WITH_ACTION_MS = 15_000;
const SHOWN_AT_ONCE = 3;
const toasts = new Store<readonly Toast[]>([]);
let lastId = 0;

/** Say for some seconds that something was done. Errors are no toasts: they stay where they arose (ErrorPanel). */
export function showToast(text: string, action: ToastAction | null = null): void {
  lastId += 1;
  const id = lastId;
  toasts.set([...toasts.state(), { id, text, action }].slice(-SHOWN_AT_ONCE));
  setTimeout(() => dismiss(id), action ? SHOWN_WITH_ACTION_MS : SHOWN_MS);
}

function dismiss(id: number): void {
  toasts.set(toasts.state().filter((toast) => toast.id !== id));
}

function ActionButton({ id, action }: { id: number; action: ToastAction }) {
  const run = () => {
    dismiss(id);
    action.run();
  };
  return (
    <Button kind="quiet" onPress={run}>
      {action.label}
    </Button>
  );
}

export function ToastRegion() {
  const t = useText(common);
  const shown = useSyncExternalStore(toasts.watch, toasts.state);
  return (
    <div className={styles.region} role="status" aria-live="polite">
      {shown.map((toast) => (
        <div key={toast.id} className={styles.toast}>
          <span className={styles.text}>{toast.text}</span>
          {toast.action && <ActionButton id={toast.id} action={toast.action} />}
          <Button kind="quiet" iconOnly aria-label={t.close} onPress={() => dismiss(toast.id)}>
            <X size={16} aria-hidden />
          </Button>
        </div>
      ))}
    </div>
  );
}
