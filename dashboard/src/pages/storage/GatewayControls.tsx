import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';

import { addControl, removeControl, type Control, type ControlKind, type Gateway } from '../../api/gateways';
import { useMay } from '../../app/useSession';
import { Button } from '../../components/Button';
import { CodeBlock } from '../../components/CodeBlock';
import { Dialog } from '../../components/Dialog';
import { ErrorPanel } from '../../components/ErrorPanel';
import { TextField } from '../../components/Field';
import { FormDialog } from '../../components/FormDialog';
import { Note, PlainList, Row } from '../../components/Row';
import * as gateways from '../../i18n/gateways';
import { useText } from '../../i18n/language';

const KINDS = ['access_tokens', 'ips', 'hosts'] as const;

/** Who may use a gateway: tokens, addresses and hosts. */
export function GatewayControls({ gateway }: { gateway: Gateway }) {
  const t = useText(gateways);
  const may = useMay();
  const [adding, setAdding] = useState<'ips' | 'hosts' | null>(null);
  const { accessTokens, allowedIPAddresses, allowedHosts } = gateway.settings.restriction_policies;
  const controls: Record<ControlKind, readonly Control[]> = {
    access_tokens: accessTokens,
    ips: allowedIPAddresses,
    hosts: allowedHosts,
  };
  const remove = useMutation({
    mutationFn: ({ kind, control }: { kind: ControlKind; control: Control }) =>
      removeControl(gateway.id, kind, control.id),
  });
  const token = useMutation({ mutationFn: () => addControl(gateway.id, 'access_tokens', '') });
  const problem = remove.error ?? token.error;
  return (
    <>
      <h3>{t.access}</h3>
      {KINDS.every((kind) => controls[kind].length === 0) && <Note>{t.noControls}</Note>}
      <PlainList label={t.access}>
        {KINDS.flatMap((kind) =>
          controls[kind].map((control) => (
            <li key={control.id}>
              <Row>
                <span>{t.kinds[kind]}</span>
                <code>{control.value}</code>
                {may('editor') && (
                  <Button
                    aria-label={t.removeControl(control.value)}
                    isDisabled={remove.isPending}
                    onPress={() => remove.mutate({ kind, control })}
                  >
                    {t.remove}
                  </Button>
                )}
              </Row>
            </li>
          )),
        )}
      </PlainList>
      {problem && <ErrorPanel error={problem} />}
      {may('editor') && (
        <Row>
          <Button isDisabled={token.isPending} onPress={() => token.mutate()}>
            {t.addToken}
          </Button>
          <Button onPress={() => setAdding('ips')}>{t.addAddress}</Button>
          <Button onPress={() => setAdding('hosts')}>{t.addHost}</Button>
        </Row>
      )}
      {token.data && (
        <Dialog
          title={t.tokenTitle(gateway.domain)}
          role="alertdialog"
          isOpen
          onClose={token.reset}
          actions={
            <Button kind="primary" onPress={token.reset}>
              {t.done}
            </Button>
          }
        >
          <p>{t.tokenText}</p>
          <CodeBlock code={token.data.value} label={t.kinds.access_tokens} />
        </Dialog>
      )}
      {adding && <AddDialog gateway={gateway} kind={adding} onClose={() => setAdding(null)} />}
    </>
  );
}

function AddDialog({ gateway, kind, onClose }: { gateway: Gateway; kind: 'ips' | 'hosts'; onClose: () => void }) {
  const t = useText(gateways);
  const [value, setValue] = useState('');
  const add = useMutation({ mutationFn: () => addControl(gateway.id, kind, value.trim()) });
  return (
    <FormDialog
      title={kind === 'ips' ? t.addAddress : t.addHost}
      action={t.allow}
      onClose={onClose}
      onSubmit={add.mutateAsync}
      isDisabled={!value.trim()}
    >
      <TextField label={t.kinds[kind]} hint={t.hints[kind]} value={value} onChange={setValue} autoComplete="off" autoFocus />
    </FormDialog>
  );
}
