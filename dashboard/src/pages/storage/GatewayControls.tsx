import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';

import { addControl, removeControl, type Control, type ControlKind, type Gateway } from '../../api/gateways';
import { storageTotalsQuery } from '../../api/storage';
import { useMay } from '../../app/useSession';
import { Button } from '../../components/Button';
import { CodeBlock } from '../../components/CodeBlock';
import { ConfirmButton } from '../../components/ConfirmButton';
import { Dialog } from '../../components/Dialog';
import { ErrorPanel } from '../../components/ErrorPanel';
import { TextField } from '../../components/Field';
import { FormDialog } from '../../components/FormDialog';
import { Note, PlainList, Row } from '../../components/Row';
import * as gateways from '../../i18n/gateways';
import { useText } from '../../i18n/language';
import * as reach from '../../i18n/reach';

const KINDS = ['access_tokens', 'ips', 'hosts'] as const;

/** Who may use a gateway: tokens, addresses and hosts. */
export function GatewayControls({ gateway }: { gateway: Gateway }) {
  const t = useText(gateways);
  const r = useText(reach);
  const may = useMay();
  const files = useQuery(storageTotalsQuery).data?.public.files;
  const [adding, setAdding] = useState<'ips' | 'hosts' | null>(null);
  const { accessTokens, allowedIPAddresses, allowedHosts } = gateway.settings.restriction_policies;
  const controls: Record<ControlKind, readonly Control[]> = {
    access_tokens: accessTokens,
    ips: allowedIPAddresses,
    hosts: allowedHosts,
  };
  const token = useMutation({ mutationFn: () => addControl(gateway.id, 'access_tokens', '') });
  const count = KINDS.reduce((sum, kind) => sum + controls[kind].length, 0);
  return (
    <>
      <h3>{t.access}</h3>
      {count === 0 && <Note>{t.noControls}</Note>}
      <PlainList label={t.access}>
        {KINDS.flatMap((kind) =>
          controls[kind].map((control) => (
            <li key={control.id}>
              <Row>
                <span>{t.kinds[kind]}</span>
                <code>{control.value}</code>
                {may('editor') && <RemoveButton gateway={gateway} kind={kind} control={control} others={count - 1} />}
              </Row>
            </li>
          )),
        )}
      </PlainList>
      {count > 0 && token.error && <ErrorPanel error={token.error} />}
      {may('editor') && (
        <Row>
          <ConfirmButton action={t.addToken} title={t.addToken} isDisabled={token.isPending} onConfirm={token.mutateAsync}>
            {count === 0 ? r.gatewayCloses(files) : ''}
          </ConfirmButton>
          <Button onPress={() => setAdding('ips')}>{t.addAddress}</Button>
          <Button onPress={() => setAdding('hosts')}>{t.addHost}</Button>
        </Row>
      )}
      {token.data && <TokenDialog gateway={gateway} token={token.data.value} onClose={token.reset} />}
      {adding && (
        <AddDialog
          gateway={gateway}
          kind={adding}
          question={count === 0 ? r.gatewayCloses(files) : ''}
          onClose={() => setAdding(null)}
        />
      )}
    </>
  );
}

interface RemoveProps {
  gateway: Gateway;
  kind: ControlKind;
  control: Control;
  /** The number of the gateway's other controls. */
  others: number;
}

function RemoveButton({ gateway, kind, control, others }: RemoveProps) {
  const t = useText(gateways);
  const r = useText(reach);
  const files = useQuery(storageTotalsQuery).data?.public.files;
  const remove = useMutation({ mutationFn: () => removeControl(gateway.id, kind, control.id) });
  return (
    <ConfirmButton
      action={t.remove}
      title={t.removeControl(control.value)}
      isDisabled={remove.isPending}
      onConfirm={remove.mutateAsync}
    >
      {others === 0 ? r.gatewayOpens(files) : r.controlRemoved(others)}
    </ConfirmButton>
  );
}

function TokenDialog({ gateway, token, onClose }: { gateway: Gateway; token: string; onClose: () => void }) {
  const t = useText(gateways);
  return (
    <Dialog
      title={t.tokenTitle(gateway.domain)}
      role="alertdialog"
      isOpen
      onClose={onClose}
      actions={
        <Button kind="primary" onPress={onClose}>
          {t.done}
        </Button>
      }
    >
      <p>{t.tokenText}</p>
      <CodeBlock code={token} label={t.kinds.access_tokens} />
    </Dialog>
  );
}

interface AddProps {
  gateway: Gateway;
  kind: 'ips' | 'hosts';
  question: string;
  onClose: () => void;
}

function AddDialog({ gateway, kind, question, onClose }: AddProps) {
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
      question={question}
    >
      <TextField label={t.kinds[kind]} hint={t.hints[kind]} value={value} onChange={setValue} autoComplete="off" autoFocus />
    </FormDialog>
  );
}
