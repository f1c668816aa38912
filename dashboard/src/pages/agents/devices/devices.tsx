import { useMutation, useQuery } from '@tanstack/react-query';
import { getRouteApi } from '@tanstack/react-router';

import { approveAllDevices, approveDevice, devicesQuery, type PairedDevice, type PendingDevice } from '../../../api/agentData';
import { useMay } from '../../../app/useSession';
import { ConfirmButton } from '../../../components/ConfirmButton';
import { EmptyState } from '../../../components/EmptyState';
import { ErrorPanel } from '../../../components/ErrorPanel';
import { Item, ItemList } from '../../../components/ItemList';
import { Loaded } from '../../../components/Loaded';
import { Page, Section } from '../../../components/Page';
import { StatusBadge } from '../../../components/StatusBadge';
import { Timestamp } from '../../../components/Timestamp';
import { showToast } from '../../../components/Toast';
import * as devices from '../../../i18n/devices';
import { useText } from '../../../i18n/language';
import * as reach from '../../../i18n/reach';

const route = getRouteApi('/shell/agents/$id/devices');
const THIS_MACHINE = '192.0.0.8'; // the server sends it to engines in place of loopback addresses, which they trust (dummy address of RFC 7600)
const POLL_MS = 2_000; // who waits for an approval looks at this page

export function AgentDevicesPage() {
  const { id } = route.useParams();
  const t = useText(devices);
  const query = useQuery({ ...devicesQuery(id), refetchInterval: POLL_MS });
  return (
    <Page title={t.title} lead={t.lead}>
      <Loaded query={query}>
        {({ pending = [], paired = [], supported, message }) => {
          if (supported === false) return <EmptyState title={t.unsupported}>{message}</EmptyState>;
          if (pending.length + paired.length === 0) return <EmptyState title={t.emptyTitle}>{t.emptyText}</EmptyState>;
          return (
            <>
              <PendingSection agentId={id} pending={pending} />
              {paired.length > 0 && (
                <Section title={t.paired}>
                  <ItemList label={t.paired}>
                    {paired.map((device) => (
                      <PairedItem key={device.deviceId} device={device} />
                    ))}
                  </ItemList>
                </Section>
              )}
            </>
          );
        }}
      </Loaded>
    </Page>
  );
}

function PendingSection({ agentId, pending }: { agentId: string; pending: readonly PendingDevice[] }) {
  const t = useText(devices);
  const r = useText(reach);
  const may = useMay();
  const approveAll = useMutation({
    mutationFn: () => approveAllDevices(agentId),
    onSuccess: ({ approved }) => showToast(t.approvedAll(approved.length)),
  });
  const action = may('editor') && pending.length > 1 && (
    <ConfirmButton action={t.approveAll} title={t.approveAll} onConfirm={approveAll.mutateAsync}>
      {r.devices(pending.length)}
    </ConfirmButton>
  );
  return (
    <Section title={t.pending} actions={action}>
      {approveAll.data?.failed.map(({ requestId, error }) => (
        <ErrorPanel key={requestId} error={new Error(error)} title={t.notApproved(requestId)} />
      ))}
      {pending.length === 0 ? (
        <p>{t.noPending}</p>
      ) : (
        <ItemList label={t.pending}>
          {pending.map((device) => (
            <PendingItem key={device.requestId} agentId={agentId} device={device} />
          ))}
        </ItemList>
      )}
    </Section>
  );
}

function PendingItem({ agentId, device }: { agentId: string; device: PendingDevice }) {
  const t = useText(devices);
  const r = useText(reach);
  const may = useMay();
  const name = device.displayName ?? t.unnamed;
  const approve = useMutation({
    mutationFn: () => approveDevice(agentId, device.requestId),
    onSuccess: () => showToast(t.approved(name)),
  });
  const facts = (
    <>
      <DeviceFacts device={device} />
      {device.requestedAt && <Timestamp at={device.requestedAt} />}
    </>
  );
  return (
    <Item
      title={name}
      badge={device.isRepair && <StatusBadge tone="warn">{t.repair}</StatusBadge>}
      facts={facts}
      actions={
        may('editor') && (
          <ConfirmButton kind="primary" action={t.approve} title={r.askFor(t.approve, name)} onConfirm={approve.mutateAsync}>
            {r.devices(1)}
          </ConfirmButton>
        )
      }
    />
  );
}

function PairedItem({ device }: { device: PairedDevice }) {
  const t = useText(devices);
  const facts = (
    <>
      <DeviceFacts device={device} />
      {device.lastSeenAt && <Timestamp at={device.lastSeenAt} />}
    </>
  );
  return (
    <Item
      title={device.displayName ?? t.unnamed}
      badge={device.connected === true && <StatusBadge tone="ok">{t.connected}</StatusBadge>}
      facts={facts}
    />
  );
}

function DeviceFacts({ device }: { device: PendingDevice | PairedDevice }) {
  const t = useText(devices);
  return (
    <>
      {device.platform && <span>{device.platform}</span>}
      {device.role && <span>{device.role}</span>}
      {device.remoteIp && <span>{device.remoteIp === THIS_MACHINE ? t.fromHere : t.from(device.remoteIp)}</span>}
      <code>{device.deviceId}</code>
    </>
  );
}
