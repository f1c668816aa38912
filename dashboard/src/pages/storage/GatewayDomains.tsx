import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';

import { addGatewayDomain, removeGatewayDomain, verifyGatewayDomain, type CustomDomain, type Gateway } from '../../api/gateways';
import { storageTotalsQuery } from '../../api/storage';
import { useMay } from '../../app/useSession';
import { Button } from '../../components/Button';
import { ConfirmButton } from '../../components/ConfirmButton';
import { ErrorPanel } from '../../components/ErrorPanel';
import { TextField } from '../../components/Field';
import { FormDialog } from '../../components/FormDialog';
import { Note, PlainList, Row } from '../../components/Row';
import { StatusBadge } from '../../components/StatusBadge';
import * as gateways from '../../i18n/gateways';
import { useText } from '../../i18n/language';
import * as reach from '../../i18n/reach';

/** The own domains of a gateway, with what is missing for each. */
export function GatewayDomains({ gateway }: { gateway: Gateway }) {
  const t = useText(gateways);
  const r = useText(reach);
  const may = useMay();
  const files = useQuery(storageTotalsQuery).data?.public.files;
  const [isAdding, setAdding] = useState(false);
  const verify = useMutation({ mutationFn: (domainId: string) => verifyGatewayDomain(gateway.id, domainId) });
  const remove = useMutation({ mutationFn: (domainId: string) => removeGatewayDomain(gateway.id, domainId) });
  return (
    <>
      <h3>{t.domains}</h3>
      {gateway.custom_domains.length === 0 && <Note>{t.noDomains}</Note>}
      <PlainList label={t.domains}>
        {gateway.custom_domains.map((domain) => (
          <li key={domain.custom_domain_id}>
            <Row>
              <DomainState domain={domain} />
              {may('editor') && (
                <>
                  <Button
                    aria-label={t.verifyDomain(domain.domain)}
                    isDisabled={verify.isPending}
                    onPress={() => verify.mutate(domain.custom_domain_id)}
                  >
                    {t.verify}
                  </Button>
                  <ConfirmButton
                    action={t.remove}
                    title={t.removeControl(domain.domain)}
                    onConfirm={() => remove.mutateAsync(domain.custom_domain_id)}
                  >
                    {r.gatewayDomain(files, gateway.url)}
                  </ConfirmButton>
                </>
              )}
            </Row>
            {domain.reason && <Note small>{domain.reason}</Note>}
          </li>
        ))}
      </PlainList>
      {verify.error && <ErrorPanel error={verify.error} />}
      {may('editor') && (
        <Row>
          <Button onPress={() => setAdding(true)}>{t.addDomain}</Button>
        </Row>
      )}
      {isAdding && <AddDialog gateway={gateway} onClose={() => setAdding(false)} />}
    </>
  );
}

function DomainState({ domain }: { domain: CustomDomain }) {
  const t = useText(gateways);
  const isActive = domain.domain_validation_status === 'active' && domain.ssl_validation_status === 'active';
  return (
    <>
      <code>{domain.domain}</code>
      <StatusBadge tone={isActive ? 'ok' : 'warn'}>{isActive ? t.active : t.pending}</StatusBadge>
    </>
  );
}

function AddDialog({ gateway, onClose }: { gateway: Gateway; onClose: () => void }) {
  const t = useText(gateways);
  const [domain, setDomain] = useState('');
  const add = useMutation({ mutationFn: () => addGatewayDomain(gateway.id, domain.trim()) });
  return (
    <FormDialog title={t.addDomain} action={t.add} onClose={onClose} onSubmit={add.mutateAsync} isDisabled={!domain.trim()}>
      <TextField label={t.domain} hint={t.domainHint} value={domain} onChange={setDomain} autoComplete="off" autoFocus />
    </FormDialog>
  );
}
