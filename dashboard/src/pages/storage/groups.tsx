import { useInfiniteQuery, useMutation, useQuery } from '@tanstack/react-query';
import { getRouteApi, Link } from '@tanstack/react-router';
import { Plus } from 'lucide-react';
import { useState } from 'react';

import { createGroup, deleteGroup, groupsQuery, renameGroup, type Group, type Network } from '../../api/storage';
import { groupAgentsQuery } from '../../api/vectors';
import { useMay } from '../../app/useSession';
import { Button } from '../../components/Button';
import { ConfirmDialog } from '../../components/ConfirmDialog';
import { EmptyState } from '../../components/EmptyState';
import { TextField } from '../../components/Field';
import { FormDialog } from '../../components/FormDialog';
import { Loaded } from '../../components/Loaded';
import { LoadMore } from '../../components/LoadMore';
import { Fields, Row } from '../../components/Row';
import { Select } from '../../components/Select';
import { Table, type Column } from '../../components/Table';
import { Timestamp } from '../../components/Timestamp';
import { showToast } from '../../components/Toast';
import { useText } from '../../i18n/language';
import * as reach from '../../i18n/reach';
import * as storage from '../../i18n/storage';
import { useNetworkChoices } from './choices';
import { StoragePage } from './StoragePage';

const route = getRouteApi('/shell/storage/groups');
type Open = { readonly kind: 'create' } | { readonly kind: 'rename' | 'delete'; readonly group: Group } | null;

export function StorageGroupsPage() {
  const t = useText(storage);
  const may = useMay();
  const navigate = route.useNavigate();
  const { network = 'private' } = route.useSearch();
  const [open, setOpen] = useState<Open>(null);
  const query = useInfiniteQuery(groupsQuery(network));
  const groups = query.data?.pages.flatMap((page) => page.groups) ?? [];
  const close = () => setOpen(null);
  const create = may('editor') && (
    <Button kind="primary" onPress={() => setOpen({ kind: 'create' })}>
      <Plus size={17} aria-hidden /> {t.newGroup}
    </Button>
  );
  return (
    <StoragePage title={t.groups} lead={t.groupsLead} actions={groups.length > 0 && create}>
      <Fields>
        <Select
          label={t.network}
          choices={useNetworkChoices()}
          value={network}
          onChange={(chosen) => void navigate({ search: { network: chosen } })}
        />
      </Fields>
      <Loaded query={query}>
        {() =>
          groups.length > 0 ? (
            <GroupTable groups={groups} network={network} onOpen={setOpen} />
          ) : (
            <EmptyState title={t.noGroups} action={create} command="roost groups create Manuals">
              {t.noGroupsText}
            </EmptyState>
          )
        }
      </Loaded>
      <LoadMore query={query} />
      {open?.kind === 'create' && <NameDialog network={network} onClose={close} />}
      {open?.kind === 'rename' && <NameDialog network={network} group={open.group} onClose={close} />}
      {open?.kind === 'delete' && <DeleteDialog network={network} group={open.group} onClose={close} />}
    </StoragePage>
  );
}

interface TableProps {
  groups: readonly Group[];
  network: Network;
  onOpen: (open: Open) => void;
}

function GroupTable({ groups, network, onOpen }: TableProps) {
  const t = useText(storage);
  const may = useMay();
  const columns: Column<Group>[] = [
    {
      id: 'name',
      title: t.name,
      cell: ({ id, name }) => (
        <Link to="/storage/files" search={{ network, group: id }}>
          {name}
        </Link>
      ),
    },
    { id: 'id', title: t.id, secondary: true, cell: ({ id }) => <code>{id}</code> },
    { id: 'created', title: t.created, secondary: true, cell: ({ created_at }) => <Timestamp at={created_at} /> },
  ];
  if (may('editor')) {
    columns.push({
      id: 'actions',
      title: t.actions,
      align: 'end',
      cell: (group) => (
        <Row end>
          <Button aria-label={t.renameGroup(group.name)} onPress={() => onOpen({ kind: 'rename', group })}>
            {t.renameAction}
          </Button>
          <Button aria-label={t.deleteGroup(group.name)} onPress={() => onOpen({ kind: 'delete', group })}>
            {t.delete}
          </Button>
        </Row>
      ),
    });
  }
  return <Table label={t.groups} columns={columns} rows={groups} rowKey={({ id }) => id} />;
}

/** Creates a group, or renames the one that is given. */
function NameDialog({ network, group, onClose }: { network: Network; group?: Group; onClose: () => void }) {
  const t = useText(storage);
  const [name, setName] = useState(group?.name ?? '');
  const save = useMutation({
    mutationFn: () => (group ? renameGroup(network, group.id, name.trim()) : createGroup(network, name.trim())),
    onSuccess: (saved) => showToast(group ? t.groupRenamed(saved.name) : t.groupCreated(saved.name)),
  });
  return (
    <FormDialog
      title={group ? t.renameGroup(group.name) : t.newGroup}
      action={group ? t.renameAction : t.createGroup}
      onClose={onClose}
      onSubmit={save.mutateAsync}
      isDisabled={!name.trim()}
    >
      <TextField label={t.name} value={name} onChange={setName} autoComplete="off" autoFocus />
    </FormDialog>
  );
}

function DeleteDialog({ network, group, onClose }: { network: Network; group: Group; onClose: () => void }) {
  const t = useText(storage);
  const r = useText(reach);
  const remove = useMutation({
    mutationFn: () => deleteGroup(network, group.id),
    onSuccess: () => showToast(t.groupDeleted(group.name)),
  });
  const agents = useQuery({ ...groupAgentsQuery(group.id), enabled: remove.isIdle }).data?.agents.length ?? 0;
  return (
    <ConfirmDialog title={t.deleteGroup(group.name)} action={t.delete} isOpen onClose={onClose} onConfirm={remove.mutateAsync}>
      {t.deleteGroupText} {agents > 0 && r.groupDeleted(agents)}
    </ConfirmDialog>
  );
}
