import { useMutation, useQuery } from '@tanstack/react-query';
import { Plus } from 'lucide-react';
import { useState } from 'react';

import { challengeQuery, programPort, removeDomain, verifyDomain, type Domain } from '../../../api/addresses';
import { useMay } from '../../../app/useSession';
import { Button } from '../../../components/Button';
import { CopyButton } from '../../../components/CodeBlock';
import { ConfirmButton } from '../../../components/ConfirmButton';
import { ErrorPanel } from '../../../components/ErrorPanel';
import { Item, ItemList } from '../../../components/ItemList';
import { Loaded } from '../../../components/Loaded';
import { Section } from '../../../components/Page';
import { Note } from '../../../components/Row';
import { StatusBadge, type Tone } from '../../../components/StatusBadge';
import { showToast } from '../../../components/Toast';
import * as addresses from '../../../i18n/addresses';
import { useText } from '../../../i18n/language';
import { AddDomainDialog, ChangeDomainDialog } from './DomainDialogs';
import styles from './routes.module.css';

interface Props {
  agentId: string;
  agentUrl: string;
  domains: readonly Domain[];
}

const TONES: Record<Domain['status'], Tone> = { pending_ownership: 'warn', pending: 'warn', active: 'ok' };

/** The domains of an agent, with what each lacks. */
export function DomainSection({ agentId, agentUrl, domains }: Props) {
  const t = useText(addresses);
  const may = useMay();
  const [isAdding, setAdding] = useState(false);
  const actions = may('editor') && (
    <Button onPress={() => setAdding(true)}>
      <Plus size={16} aria-hidden /> {t.addDomain}
    </Button>
  );
  return (
    <Section title={t.domains} actions={actions}>
      <Note>{t.domainsText}</Note>
      {domains.length === 0 ? (
        <p>{t.noDomains}</p>
      ) : (
        <ItemList label={t.domains}>
          {domains.map((domain) => (
            <DomainItem key={domain.id} domain={domain} />
          ))}
        </ItemList>
      )}
      {isAdding && <AddDomainDialog agentId={agentId} agentUrl={agentUrl} onClose={() => setAdding(false)} />}
    </Section>
  );
}

function DomainItem({ domain }: { domain: Domain }) {
  const t = useText(addresses);
  const may = useMay();
  const [isChanging, setChanging] = useState(false);
  const verify = useMutation({ mutationFn: () => verifyDomain(domain.agentId, domain.id) });
  const remove = useMutation({
    mutationFn: () => removeDomain(domain.agentId, domain.id),
    onSuccess: () => showToast(t.removed(domain.domain)),
  });
  const port = programPort(domain);
  const needsRecord = domain.status === 'pending_ownership' && may('editor');
  const facts = (
    <>
      <span>{port === null ? t.toGateway : t.toPort(port)}</span>
      <span>{domain.protected ? t.token : t.everyone}</span>
    </>
  );
  const actions = may('editor') && (
    <>
      {domain.status !== 'active' && (
        <Button aria-label={t.verifyDomain(domain.domain)} isDisabled={verify.isPending} onPress={() => verify.mutate()}>
          {verify.isPending ? t.verifying : t.verify}
        </Button>
      )}
      <Button aria-label={t.changeDomain(domain.domain)} onPress={() => setChanging(true)}>
        {t.change}
      </Button>
      <ConfirmButton action={t.remove} title={t.removeDomain(domain.domain)} onConfirm={remove.mutateAsync}>
        {t.removeText}
      </ConfirmButton>
    </>
  );
  const title =
    domain.status === 'pending_ownership' ? (
      domain.domain
    ) : (
      <a href={domain.url} target="_blank" rel="noreferrer">
        {domain.domain}
      </a>
    );
  return (
    <Item
      title={title}
      badge={<StatusBadge tone={TONES[domain.status]}>{t.statuses[domain.status]}</StatusBadge>}
      facts={facts}
      actions={actions}
    >
      {domain.reason && !needsRecord && <Note>{domain.reason}</Note>}
      {!domain.protected && <Note>{t.openText}</Note>}
      {verify.error && <ErrorPanel error={verify.error} />}
      {needsRecord && <ChallengeRecord domain={domain} />}
      {isChanging && <ChangeDomainDialog domain={domain} onClose={() => setChanging(false)} />}
    </Item>
  );
}

/** The DNS record that proves a domain. */
function ChallengeRecord({ domain }: { domain: Domain }) {
  const t = useText(addresses);
  const query = useQuery(challengeQuery(domain.agentId, domain.domain));
  return (
    <Loaded query={query}>
      {({ type, name, value }) => (
        <section className={styles.record} aria-label={t.record}>
          {/* What is missing in words, unless that is only this record, as in a new domain. */}
          {domain.reason && domain.updatedAt !== domain.createdAt && <p>{domain.reason}</p>}
          <p>{t.recordText}</p>
          <dl className={styles.values}>
            <dt>{t.type}</dt>
            <dd>
              <code>{type}</code>
            </dd>
            <dt>{t.name}</dt>
            <dd>
              <code>{name}</code> <CopyButton text={name} label={t.copyName} />
            </dd>
            <dt>{t.value}</dt>
            <dd>
              <code>{value}</code> <CopyButton text={value} label={t.copyValue} />
            </dd>
          </dl>
          <Note small>{t.pointText}</Note>
        </section>
      )}
    </Loaded>
  );
}
