import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';

import { createKey } from '../../api/access';
import { useSession } from '../../app/useSession';
import { Button } from '../../components/Button';
import { Checkbox } from '../../components/Checkbox';
import { CodeBlock } from '../../components/CodeBlock';
import { Dialog } from '../../components/Dialog';
import { TextField } from '../../components/Field';
import { FormDialog } from '../../components/FormDialog';
import { Select } from '../../components/Select';
import * as access from '../../i18n/access';
import { useText } from '../../i18n/language';
import { parseUses } from './uses';

interface IssuedKey {
  readonly name: string;
  readonly token: string;
}

export function CreateKeyDialog({ onClose, onCreated }: { onClose: () => void; onCreated: (key: IssuedKey) => void }) {
  const t = useText(access);
  const session = useSession();
  const [name, setName] = useState('');
  const [isFull, setFull] = useState(false);
  const [scopes, setScopes] = useState<readonly string[]>([]);
  const [uses, setUses] = useState('');
  const maxUses = parseUses(uses);
  const create = useMutation({
    mutationFn: () => createKey(name.trim(), isFull ? null : scopes, maxUses ?? null),
    onSuccess: ({ JWT }) => onCreated({ name: name.trim(), token: JWT }),
  });
  const toggle = (scope: string, isSelected: boolean) =>
    setScopes(isSelected ? [...scopes, scope] : scopes.filter((one) => one !== scope));
  return (
    <FormDialog
      title={t.newKey}
      action={t.createKey}
      onClose={onClose}
      onSubmit={create.mutateAsync}
      isDisabled={!name.trim() || maxUses === undefined || (!isFull && scopes.length === 0)}
    >
      <TextField label={t.keyName} hint={t.keyNameHint} value={name} onChange={setName} autoComplete="off" autoFocus />
      <Select
        label={t.rights}
        choices={[
          { id: 'limited', label: t.limited },
          { id: 'full', label: t.full },
        ]}
        value={isFull ? 'full' : 'limited'}
        onChange={(chosen) => setFull(chosen === 'full')}
      />
      {!isFull && (
        <div role="group" aria-label={t.limited}>
          {session?.scopes.map((scope) => (
            <Checkbox key={scope} isSelected={scopes.includes(scope)} onChange={(chosen) => toggle(scope, chosen)}>
              {t.scopes[scope] ?? scope}
            </Checkbox>
          ))}
        </div>
      )}
      <TextField
        label={t.maxUses}
        hint={t.maxUsesHint}
        error={maxUses === undefined ? t.maxUsesWrong : undefined}
        value={uses}
        onChange={setUses}
        inputMode="numeric"
        autoComplete="off"
      />
    </FormDialog>
  );
}

/** Shows the token of a new key, which no later answer has. */
export function KeyDialog({ name, token, onClose }: IssuedKey & { onClose: () => void }) {
  const t = useText(access);
  return (
    <Dialog
      title={t.onceTitle(name)}
      isOpen
      onClose={onClose}
      role="alertdialog"
      actions={
        <Button kind="primary" onPress={onClose}>
          {t.done}
        </Button>
      }
    >
      <p>{t.onceText}</p>
      <CodeBlock code={token} label={t.token} />
    </Dialog>
  );
}
