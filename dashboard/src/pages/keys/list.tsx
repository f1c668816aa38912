import { useMutation, useQuery } from '@tanstack/react-query';
import { Plus } from 'lucide-react';
import { useState } from 'react';

import { keysQuery, revokeKey, tokenReadsQuery, type ApiKey } from '../../api/access';
import { useMay } from '../../app/useSession';
import { Button } from '../../components/Button';
import { Checkbox } from '../../components/Checkbox';
import { ConfirmDialog } from '../../components/ConfirmDialog';
import { EmptyState } from '../../components/EmptyState';
import { Page } from '../../components/Page';
import { Loaded } from '../../components/Loaded';
import { Note, Row } from '../../components/Row';
import { Table, type Column } from '../../components/Table';
import { Timestamp } from '../../components/Timestamp';
import { showToast } from '../../components/Toast';
import * as access from '../../i18n/access';
import { useText } from '../../i18n/language';
import { CreateKeyDialog, KeyDialog } from './create';

const PAGE_SIZE = 10;

export function KeyListPage() {
  const t = useText(access);
  const may = useMay();
  const [offset, setOffset] = useState(0);
  const [isCreating, setCreating] = useState(false);
  const [issued, setIssued] = useState<{ name: string; token: string } | null>(null);
  const [revoking, setRevoking] = useState<ApiKey | null>(null);
  const query = useQuery(keysQuery(offset));
  const create = may('owner') && (
    <Button kind="primary" onPress={() => setCreating(true)}>
      <Plus size={17} aria-hidden /> {t.newKey}
    </Button>
  );
  return (
    <Page title={t.keys} lead={t.keysLead} actions={create}>
      {!may('owner') && <Note>{t.ownersOnly}</Note>}
      <Loaded query={query}>
        {({ keys }) => (
          <>
            {keys.length > 0 && <KeyTable keys={keys} onRevoke={setRevoking} />}
            {keys.length === 0 && (
              <EmptyState title={t.noKeys} command="roost keys create">
                {t.noKeysText}
              </EmptyState>
            )}
            {(offset > 0 || keys.length === PAGE_SIZE) && (
              <Row>
                <Button isDisabled={offset === 0} onPress={() => setOffset(Math.max(0, offset - PAGE_SIZE))}>
                  {t.newer}
                </Button>
                <Button isDisabled={keys.length < PAGE_SIZE} onPress={() => setOffset(offset + PAGE_SIZE)}>
                  {t.older}
                </Button>
              </Row>
            )}
          </>
        )}
      </Loaded>
      {isCreating && <CreateKeyDialog onClose={() => setCreating(false)} onCreated={setIssued} />}
      {issued && <KeyDialog {...issued} onClose={() => setIssued(null)} />}
      {revoking && <RevokeDialog apiKey={revoking} onClose={() => setRevoking(null)} />}
    </Page>
  );
}

function KeyTable({ keys, onRevoke }: { keys: readonly ApiKey[]; onRevoke: (key: ApiKey) => void }) {
  const t = useText(access);
  const may = useMay();
  const columns: Column<ApiKey>[] = [
    { id: 'name', title: t.keyName, cell: ({ name }) => name },
    {
      id: 'rights',
      title: t.rights,
      cell: ({ scopes }) => (scopes.admin ? t.full : scopes.resources.map((scope) => t.scopes[scope] ?? scope).join(', ')),
    },
    {
      id: 'uses',
      title: t.uses,
      align: 'end',
      secondary: true,
      cell: ({ uses, max_uses }) => (max_uses === null ? '-' : t.usesOf(uses, max_uses)),
    },
    { id: 'created', title: t.created, secondary: true, cell: ({ createdAt }) => <Timestamp at={createdAt} /> },
  ];
  if (may('owner')) {
    columns.push({
      id: 'actions',
      title: t.actions,
      align: 'end',
      cell: (key) => (
        <Button aria-label={t.revokeKey(key.name)} onPress={() => onRevoke(key)}>
          {t.revoke}
        </Button>
      ),
    });
  }
  return <Table label={t.keys} columns={columns} rows={keys} rowKey={({ id }) => id} />;
}

function RevokeDialog({ apiKey, onClose }: { apiKey: ApiKey; onClose: () => void }) {
  const t = useText(access);
  const [rotates, setRotates] = useState(false);
  const reads = useQuery(tokenReadsQuery(apiKey.key));
  const revoke = useMutation({
    mutationFn: () => revokeKey(apiKey.key, rotates),
    onSuccess: () => showToast(t.keyRevoked(apiKey.name)),
  });
  return (
    <ConfirmDialog title={t.revokeKey(apiKey.name)} action={t.revoke} isOpen onClose={onClose} onConfirm={revoke.mutateAsync}>
      <p>{t.revokeText}</p>
      <Loaded query={reads}>
        {({ agents }) =>
          agents.length > 0 && (
            <>
              <p>{t.tokensRead([...new Set(agents.map(({ agentName }) => agentName))].join(', '))}</p>
              <Checkbox isSelected={rotates} onChange={setRotates}>
                {t.rotateTokens}
              </Checkbox>
            </>
          )
        }
      </Loaded>
    </ConfirmDialog>
  );
}
