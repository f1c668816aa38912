import { useMutation } from '@tanstack/react-query';
import { Check } from 'lucide-react';

import { approveRequest, type Channel, type ChannelName, type PairingRequest } from '../../../api/channels';
import { useMay } from '../../../app/useSession';
import { ConfirmButton } from '../../../components/ConfirmButton';
import { Row, Stack } from '../../../components/Row';
import { Timestamp } from '../../../components/Timestamp';
import { showToast } from '../../../components/Toast';
import * as channels from '../../../i18n/channels';
import { useText } from '../../../i18n/language';
import * as reach from '../../../i18n/reach';
import { useChannelAbility } from './ChannelState';

const NAME_LIMIT = 40;

interface Props {
  agentId: string;
  name: ChannelName;
  channel: Channel;
}

/** Who wrote to a bot and waits for approval, and when the last message came. Texts stay with the engine. */
export function ChannelMessages({ agentId, name, channel }: Props) {
  const t = useText(channels);
  const { reportsMessages } = useChannelAbility(agentId, name);
  const { connected, lastMessageAt, pairingRequests } = channel;
  const isWaiting = connected && !lastMessageAt && pairingRequests.length === 0 && reportsMessages;
  return (
    <Stack>
      {pairingRequests.map((request) => (
        <Request key={request.requestId ?? request.senderId} agentId={agentId} name={name} request={request} />
      ))}
      <div role="status">
        {isWaiting && t.waitingForMessage}
        {lastMessageAt && (
          <Row>
            <Check size={17} aria-hidden /> {t.received} <Timestamp at={lastMessageAt} />
          </Row>
        )}
      </div>
    </Stack>
  );
}

interface RequestProps {
  agentId: string;
  name: ChannelName;
  request: PairingRequest;
}

function Request({ agentId, name, request }: RequestProps) {
  const t = useText(channels);
  const r = useText(reach);
  const may = useMay();
  const { requestId, requestedAt, senderId, senderName } = request;
  const who = (senderName ?? senderId).slice(0, NAME_LIMIT);
  const approve = useMutation({
    mutationFn: (id: string) => approveRequest(agentId, name, id),
    onSuccess: () => showToast(t.approvedPerson(who)),
  });
  return (
    <Row>
      <span role="status">
        {t.wrote(who)} <code>{senderId}</code> {requestedAt && <Timestamp at={requestedAt} />}
      </span>
      {requestId !== null && may('editor') && (
        <ConfirmButton
          kind="primary"
          action={t.approvePerson(who)}
          title={t.approvePerson(who)}
          onConfirm={() => approve.mutateAsync(requestId)}
        >
          {r.personApproved(who)}
        </ConfirmButton>
      )}
    </Row>
  );
}
