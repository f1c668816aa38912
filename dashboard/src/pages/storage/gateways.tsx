import { useMutation, useQuery } from '@tanstack/react-query';
import { Plus } from 'lucide-react';
import { useState } from 'react';

import { createGateway, deleteGateway, gatewaysQuery, type Gateway } from '../../api/gateways';
import { useMay } from '../../app/useSession';
import { Button } from '../../components/Button';
import { CopyButton } from '../../components/CodeBlock';
import { ConfirmButton } from '../../components/ConfirmButton';
import { EmptyState } from '../../components/EmptyState';
import { TextField } from '../../components/Field';
import { FormDialog } from '../../components/FormDialog';
import { Section } from '../../components/Page';
import { Loaded } from '../../components/Loaded';
import { Note, Row } from '../../components/Row';
import { StatusBadge } from '../../components/StatusBadge';
import { showToast } from '../../components/Toast';
import * as gateways from '../../i18n/gateways';
import { useText } from '../../i18n/language';
import { GatewayControls } from './GatewayControls';
import { GatewayDomains } from './GatewayDomains';
import { GatewayPlugins } from './GatewayPlugins';
import { StoragePage } from './StoragePage';

export function StorageGatewaysPage() {
  const t = useText(gateways);
  const may = useMay();
  const query = useQuery(gatewaysQuery);
  const [isCreating, setCreating] = useState(false);
  const create = may('editor') && (
    <Button kind="primary" onPress={() => setCreating(true)}>
      <Plus size={17} aria-hidden /> {t.create}
    </Button>
  );
  const isEmpty = query.data?.rows.length === 0;
  return (
    <StoragePage title={t.title} lead={t.lead} actions={!isEmpty && create}>
      <Loaded query={query}>
        {({ rows }) =>
          isEmpty ? (
            <EmptyState title={t.empty} action={create} command="roost gateways create my-files">
              {t.emptyText}
            </EmptyState>
          ) : (
            rows.map((gateway) => <GatewaySection key={gateway.id} gateway={gateway} />)
          )
        }
      </Loaded>
      {isCreating && <CreateDialog onClose={() => setCreating(false)} />}
    </StoragePage>
  );
}

function GatewaySection({ gateway }: { gateway: Gateway }) {
  const t = useText(gateways);
  const may = useMay();
  const remove = useMutation({ mutationFn: () => deleteGateway(gateway.id), onSuccess: () => showToast(t.deleted(gateway.domain)) });
  return (
    <Section
      title={gateway.domain}
      actions={
        <Row>
          <StatusBadge tone="idle">{gateway.restrict ? t.forAll : t.forAllowed}</StatusBadge>
          {may('editor') && (
            <ConfirmButton
              action={t.delete}
              title={t.deleteTitle(gateway.domain)}
              onConfirm={remove.mutateAsync}
              typed={gateway.domain}
            >
              {t.deleteText(1 + gateway.custom_domains.length)}
            </ConfirmButton>
          )}
        </Row>
      }
    >
      <Row>
        <code>{gateway.url}</code>
        <CopyButton text={gateway.url} label={t.copyUrl} />
      </Row>
      <Note>{gateway.restrict ? t.forAllText : t.forAllowedText}</Note>
      <GatewayControls gateway={gateway} />
      <GatewayDomains gateway={gateway} />
      <GatewayPlugins gateway={gateway} />
    </Section>
  );
}

function CreateDialog({ onClose }: { onClose: () => void }) {
  const t = useText(gateways);
  const [name, setName] = useState('');
  const create = useMutation({ mutationFn: createGateway, onSuccess: ({ domain }) => showToast(t.created(domain)) });
  return (
    <FormDialog
      title={t.create}
      action={t.createAction}
      onClose={onClose}
      onSubmit={() => create.mutateAsync(name.trim())}
      isDisabled={!name.trim()}
    >
      <TextField label={t.name} hint={t.nameHint} value={name} onChange={setName} autoComplete="off" monospace autoFocus />
    </FormDialog>
  );
}
