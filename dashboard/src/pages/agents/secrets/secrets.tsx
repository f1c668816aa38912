import { useMutation, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';
import { Plus } from 'lucide-react';
import { useState } from 'react';

import {
  agentSecretsQuery,
  allSecretsQuery,
  attachSecret,
  createTextSecret,
  detachSecret,
  type AgentSecret,
} from '../../../api/agentData';
import { useMay } from '../../../app/useSession';
import { useUndo } from '../../../app/useUndo';
import { Button } from '../../../components/Button';
import { ConfirmButton } from '../../../components/ConfirmButton';
import { EmptyState } from '../../../components/EmptyState';
import { TextField } from '../../../components/Field';
import { FormDialog } from '../../../components/FormDialog';
import { Item, ItemList } from '../../../components/ItemList';
import { Loaded } from '../../../components/Loaded';
import { Page } from '../../../components/Page';
import { Select } from '../../../components/Select';
import { StatusBadge } from '../../../components/StatusBadge';
import { Timestamp } from '../../../components/Timestamp';
import { showToast } from '../../../components/Toast';
import { useText } from '../../../i18n/language';
import * as reach from '../../../i18n/reach';
import * as secrets from '../../../i18n/secretsOfAgent';

const route = getRouteApi('/shell/agents/$id/secrets');

export function AgentSecretsPage() {
  const { id } = route.useParams();
  const t = useText(secrets);
  const may = useMay();
  const [open, setOpen] = useState<'create' | 'attach' | null>(null);
  const query = useQuery(agentSecretsQuery(id));
  const attached = query.data?.secrets ?? [];
  const close = () => setOpen(null);
  const actions = may('editor') && (
    <>
      <Button onPress={() => setOpen('attach')}>{t.attach}</Button>
      <Button kind="primary" onPress={() => setOpen('create')}>
        <Plus size={17} aria-hidden /> {t.create}
      </Button>
    </>
  );
  return (
    <Page title={t.title} lead={t.lead} actions={actions}>
      <Loaded query={query}>
        {() =>
          attached.length === 0 ? (
            <EmptyState title={t.emptyTitle}>{t.emptyText}</EmptyState>
          ) : (
            <ItemList label={t.title}>
              {attached.map((secret) => (
                <SecretItem key={secret.id} agentId={id} secret={secret} />
              ))}
            </ItemList>
          )
        }
      </Loaded>
      {open === 'create' && <SecretForm agentId={id} onClose={close} />}
      {open === 'attach' && <AttachForm agentId={id} attached={attached} onClose={close} />}
    </Page>
  );
}

function SecretItem({ agentId, secret }: { agentId: string; secret: AgentSecret }) {
  const t = useText(secrets);
  const may = useMay();
  const undo = useUndo();
  const detach = useMutation({
    mutationFn: () => detachSecret(agentId, secret.id),
    onSuccess: () => undo(t.detached(secret.name), () => attachSecret(agentId, secret.id)),
  });
  return (
    <Item
      title={<code>{secret.name}</code>}
      badge={!secret.synced && <StatusBadge tone="warn">{t.waiting}</StatusBadge>}
      facts={<Timestamp at={secret.updatedAt} />}
      actions={
        may('editor') && (
          <ConfirmButton action={t.detach} title={t.detachTitle(secret.name)} onConfirm={detach.mutateAsync}>
            {t.detachText}
          </ConfirmButton>
        )
      }
    />
  );
}

function SecretForm({ agentId, onClose }: { agentId: string; onClose: () => void }) {
  const t = useText(secrets);
  const [name, setName] = useState('');
  const [value, setValue] = useState('');
  const [stored, setStored] = useState<string | null>(null);
  const create = useMutation({
    mutationFn: async () => {
      const secretId = stored ?? (await createTextSecret(name.trim(), value));
      setStored(secretId); // another attempt only attaches it
      await attachSecret(agentId, secretId);
    },
    onSuccess: () => showToast(t.attachedNew(name.trim())),
  });
  return (
    <FormDialog
      title={t.create}
      action={t.create}
      onClose={onClose}
      onSubmit={create.mutateAsync}
      isDisabled={!name.trim() || !value}
    >
      <TextField label={t.name} hint={t.nameHint} value={name} onChange={setName} autoComplete="off" monospace autoFocus />
      <TextField label={t.value} type="password" value={value} onChange={setValue} autoComplete="new-password" />
    </FormDialog>
  );
}

function AttachForm({ agentId, attached, onClose }: { agentId: string; attached: readonly AgentSecret[]; onClose: () => void }) {
  const t = useText(secrets);
  const r = useText(reach);
  const [chosen, setChosen] = useState<string | null>(null);
  const query = useQuery(allSecretsQuery);
  const free = (query.data?.secrets ?? []).filter(({ id }) => !attached.some((one) => one.id === id));
  const secret = free.find(({ id }) => id === chosen) ?? free[0];
  const attach = useMutation({
    mutationFn: async () => secret && attachSecret(agentId, secret.id),
    onSuccess: () => secret && showToast(t.attached(secret.name)),
  });
  return (
    <FormDialog
      title={t.attach}
      action={t.attachAction}
      onClose={onClose}
      onSubmit={attach.mutateAsync}
      isDisabled={!secret}
      question={secret && r.secret(secret.name, secret.agents.length)}
    >
      <Loaded query={query}>
        {() =>
          secret ? (
            <Select
              label={t.secret}
              value={secret.id}
              onChange={setChosen}
              choices={free.map(({ id, name }) => ({ id, label: name }))}
            />
          ) : (
            <p>{t.none}</p>
          )
        }
      </Loaded>
    </FormDialog>
  );
}
