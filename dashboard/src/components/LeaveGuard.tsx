import { useBlocker } from '@tanstack/react-router';

import * as drafts from '../i18n/drafts';
import { useText } from '../i18n/language';
import { Button } from './Button';
import { Dialog } from './Dialog';

/** Asks before another page, or a closed window, loses changes that are not saved. Signing in again is not asked. */
export function LeaveGuard({ isChanged }: { isChanged: boolean }) {
  const blocker = useBlocker({
    shouldBlockFn: ({ current, next }) => isChanged && next.pathname !== current.pathname && next.pathname !== '/login',
    enableBeforeUnload: () => isChanged,
    withResolver: true,
  });
  return <LeaveDialog isOpen={blocker.status === 'blocked'} onStay={() => blocker.reset?.()} onLeave={() => blocker.proceed?.()} />;
}

export function LeaveDialog({ isOpen, onStay, onLeave }: { isOpen: boolean; onStay: () => void; onLeave: () => void }) {
  const t = useText(drafts);
  const actions = (
    <>
      <Button onPress={onStay}>{t.stay}</Button>
      <Button kind="danger" onPress={onLeave}>
        {t.leave}
      </Button>
    </>
  );
  return (
    <Dialog title={t.leaveTitle} role="alertdialog" isOpen={isOpen} onClose={onStay} actions={actions}>
      <p>{t.leaveText}</p>
    </Dialog>
  );
}
