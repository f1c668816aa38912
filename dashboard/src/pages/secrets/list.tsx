import { useMutation, useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { Plus } from 'lucide-react';
import { useState } from 'react';

import { changeSecret, createSecret, deleteSecret, secretsQuery, type Secret, type SecretKind } from '../../api/access';
import { useMay } from '../../app/useSession';
import { Button } from '../../components/Button';
import { ConfirmDialog } from '../../components/ConfirmDialog';
import { EmptyState } from '../../components/EmptyState';
import { TextField } from '../../components/Field';
import { FormDialog } from '../../components/FormDialog';
import { Page } from '../../components/Page';
import { Loaded } from '../../components/Loaded';
import { Row } from '../../components/Row';
import { Select } from '../../components/Select';
import { Table, type Column } from '../../components/Table';
import { Timestamp } from '../../components/Timestamp';
import { showToast } from '../../components/Toast';
import * as access from '../../i18n/access';
import { useText } from '../../i18n/language';

type Open = { readonly kind: 'create' } | { readonly kind: 'change' | 'delete'; readonly secret: Secret } | null;

export function SecretListPage() {
  const t = useText(access);
  const may = useMay();
  const query = useQuery(secretsQuery);
  const [open, setOpen] = useState<Open>(null);
  const create = (
    <Button kind="primary" onPress={() => setOpen({ kind: 'create' })}>
      <Plus size={17} aria-hidden /> {t.newSecret}
    </Button>
  );
  const { data } = query;
  const close = () => setOpen(null);
  return (
    <Page
      title={t.secrets}
      lead={data && t.secretsLead(data.secrets.length, data.secretLimit)}
      actions={may('editor') && data && data.secrets.length > 0 && create}
    >
      <Loaded query={query}>
        {({ secrets }) =>
          secrets.length === 0 ? (
            <EmptyState title={t.noSecrets} action={may('editor') && create} command="roost secrets create TELEGRAM_BOT_TOKEN">
              {t.noSecretsText}
            </EmptyState>
          ) : (
            <SecretTable secrets={secrets} onOpen={setOpen} />
          )
        }
      </Loaded>
      {open?.kind === 'create' && <CreateDialog onClose={close} />}
      {open?.kind === 'change' && <ChangeDialog secret={open.secret} onClose={close} />}
      {open?.kind === 'delete' && <DeleteDialog secret={open.secret} onClose={close} />}
    </Page>
  );
}

function SecretTable({ secrets, onOpen }: { secrets: readonly Secret[]; onOpen: (open: Open) => void }) {
  const t = useText(access);
  const may = useMay();
  const columns: Column<Secret>[] = [
    { id: 'name', title: t.name, cell: (secret) => <code>{secret.name}</code> },
    { id: 'kind', title: t.kind, secondary: true, cell: ({ type }) => t.kinds[type] },
    { id: 'value', title: t.value, secondary: true, cell: ({ value }) => (value == null ? '••••' : <code>{value}</code>) },
    { id: 'agents', title: t.usedBy, cell: ({ agents }) => <AgentLinks agents={agents} /> },
    { id: 'changed', title: t.changed, secondary: true, cell: ({ updatedAt }) => <Timestamp at={updatedAt} /> },
  ];
  if (may('editor')) {
    columns.push({
      id: 'actions',
      title: t.actions,
      align: 'end',
      cell: (secret) => (
        <Row end>
          <Button aria-label={t.changeSecret(secret.name)} onPress={() => onOpen({ kind: 'change', secret })}>
            {t.change}
          </Button>
          <Button aria-label={t.deleteSecret(secret.name)} onPress={() => onOpen({ kind: 'delete', secret })}>
            {t.delete}
          </Button>
        </Row>
      ),
    });
  }
  return <Table label={t.secrets} columns={columns} rows={secrets} rowKey={({ id }) => id} />;
}

function AgentLinks({ agents }: { agents: Secret['agents'] }) {
  const t = useText(access);
  if (agents.length === 0) return <>{t.unused}</>;
  return (
    <Row>
      {agents.map(({ agentId, name }) => (
        <Link key={agentId} to="/agents/$id/overview" params={{ id: agentId }}>
          {name}
        </Link>
      ))}
    </Row>
  );
}

function CreateDialog({ onClose }: { onClose: () => void }) {
  const t = useText(access);
  const [name, setName] = useState('');
  const [value, setValue] = useState('');
  const [type, setType] = useState<SecretKind>('secret');
  const create = useMutation({ mutationFn: createSecret, onSuccess: () => showToast(t.secretCreated(name.trim())) });
  const kinds = (['secret', 'variable'] as const).map((id) => ({ id, label: t.kinds[id], description: t.kindText[id] }));
  return (
    <FormDialog
      title={t.newSecret}
      action={t.createSecret}
      onClose={onClose}
      onSubmit={() => create.mutateAsync({ name: name.trim(), value, type })}
      isDisabled={!name.trim() || !value}
    >
      <TextField label={t.name} hint={t.nameHint} value={name} onChange={setName} autoComplete="off" monospace autoFocus />
      <Select label={t.kind} choices={kinds} value={type} onChange={setType} hint={t.kindText[type]} />
      <ValueField label={t.value} isSecret={type === 'secret'} value={value} onChange={setValue} />
    </FormDialog>
  );
}

function ChangeDialog({ secret, onClose }: { secret: Secret; onClose: () => void }) {
  const t = useText(access);
  const [value, setValue] = useState(secret.value ?? '');
  const change = useMutation({
    mutationFn: () => changeSecret(secret.id, value),
    onSuccess: () => showToast(t.secretChanged(secret.name)),
  });
  return (
    <FormDialog
      title={t.changeSecret(secret.name)}
      action={t.change}
      onClose={onClose}
      onSubmit={change.mutateAsync}
      isDisabled={!value}
    >
      <ValueField
        label={t.newValue}
        isSecret={secret.type === 'secret'}
        value={value}
        onChange={setValue}
        hint={secret.agents.length > 0 ? t.newValueHint(secret.agents.map(({ name }) => name).join(', ')) : undefined}
      />
    </FormDialog>
  );
}

interface ValueProps {
  label: string;
  isSecret: boolean;
  value: string;
  onChange: (value: string) => void;
  hint?: string;
}

/** Variables have several lines; what is typed into a secret is hidden. */
function ValueField({ isSecret, ...rest }: ValueProps) {
  return isSecret ? (
    <TextField {...rest} type="password" autoComplete="new-password" monospace />
  ) : (
    <TextField {...rest} lines={3} autoComplete="off" monospace />
  );
}

function DeleteDialog({ secret, onClose }: { secret: Secret; onClose: () => void }) {
  const t = useText(access);
  const remove = useMutation({ mutationFn: () => deleteSecret(secret.id), onSuccess: () => showToast(t.secretDeleted(secret.name)) });
  return (
    <ConfirmDialog title={t.deleteSecret(secret.name)} action={t.delete} isOpen onClose={onClose} onConfirm={remove.mutateAsync}>
      <p>{t.deleteText}</p>
      {secret.agents.length > 0 && (
        <>
          <p>{t.attachedText}</p>
          <AgentLinks agents={secret.agents} />
        </>
      )}
    </ConfirmDialog>
  );
}
