import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';

import { addDomain, removeDomain, verifyDomain, type CustomDomain, type Gateway } from '../../api/gateways';
import { useMay } from '../../app/useSession';
import { Button } from '../../components/Button';
import { ErrorPanel } from '../../components/ErrorPanel';
import { TextField } from '../../components/Field';
import { FormDialog } from '../../components/FormDialog';
import { Note, PlainList, Row } from '../../components/Row';
import { StatusBadge } from '../../components/StatusBadge';
import * as gateways from '../../i18n/gateways';
import { useText } from '../../i18n/language';

/** The own domains of a gateway, with what is missing for each. */
export function GatewayDomains({ gateway }: { gateway: Gateway }) {
  const t = useText(gateways);
  const may = useMay();
  const [isAdding, setAdding] = useState(false);
  const verify = useMutation({ mutationFn: (domainId: string) => verifyDomain(gateway.id, domainId) });
  const remove = useMutation({ mutationFn: (domainId: string) => removeDomain(gateway.id, domainId) });
  const problem = verify.error ?? remove.error;
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
                  <Button
                    aria-label={t.removeControl(domain.domain)}
                    isDisabled={remove.isPending}
                    onPress={() => remove.mutate(domain.custom_domain_id)}
                  >
                    {t.remove}
                  </Button>
                </>
              )}
            </Row>
            {domain.reason && <Note small>{domain.reason}</Note>}
          </li>
        ))}
      </PlainList>
      {problem && <ErrorPanel error={problem} />}
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
  const add = useMutation({ mutationFn: () => addDomain(gateway.id, domain.trim()) });
  return (
    <FormDialog
      title={t.addDomain}
      action={t.add}
      onClose={onClose}
      onSubmit={add.mutateAsync}
      isDisabled={!domain.trim()}
    >
      <TextField label={t.domain} hint={t.domainHint} value={domain} onChange={setDomain} autoComplete="off" autoFocus />
    </FormDialog>
  );
}
