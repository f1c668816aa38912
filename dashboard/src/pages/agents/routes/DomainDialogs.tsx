import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';

import { addDomain, changeDomain, parsePort, programPort, subdomainSuffix, type Domain } from '../../../api/addresses';
import { TextField } from '../../../components/Field';
import { FormDialog } from '../../../components/FormDialog';
import { Select } from '../../../components/Select';
import { showToast } from '../../../components/Toast';
import * as addresses from '../../../i18n/addresses';
import { useText } from '../../../i18n/language';
import * as reach from '../../../i18n/reach';
import { AccessSelect } from './RouteSection';

/** Where a domain leads, as it is typed. */
interface Target {
  readonly to: 'gateway' | 'program';
  readonly port: string;
  readonly isProtected: boolean;
}

const portOf = ({ to, port }: Target): number | null => (to === 'gateway' ? null : parsePort(port));
const isComplete = (target: Target): boolean => target.to === 'gateway' || parsePort(target.port) !== null;
const isProtected = (target: Target): boolean => target.to === 'gateway' || target.isProtected;

interface AddProps {
  agentId: string;
  agentUrl: string;
  onClose: () => void;
}

export function AddDomainDialog({ agentId, agentUrl, onClose }: AddProps) {
  const t = useText(addresses);
  const r = useText(reach);
  const suffix = subdomainSuffix(agentUrl, agentId);
  const [kind, setKind] = useState<'subdomain' | 'custom'>('subdomain');
  const [name, setName] = useState('');
  const [target, setTarget] = useState<Target>({ to: 'program', port: '', isProtected: true });
  const isSubdomain = kind === 'subdomain';
  const add = useMutation({
    mutationFn: () => {
      const named = isSubdomain ? { subdomain: name.trim() } : { customDomain: name.trim() };
      return addDomain(agentId, { ...named, targetPort: portOf(target), protected: isProtected(target) });
    },
    onSuccess: ({ domain }) => showToast(t.added(domain.domain)),
  });
  const hint = isSubdomain ? suffix && t.subdomainHint(suffix) : t.customHint;
  return (
    <FormDialog
      title={t.addDomain}
      action={t.add}
      onClose={onClose}
      onSubmit={add.mutateAsync}
      isDisabled={!name.trim() || !isComplete(target)}
      question={isProtected(target) ? '' : r.domainOpens(portOf(target) ?? 0)}
    >
      <Select
        label={t.kind}
        value={kind}
        onChange={setKind}
        choices={(['subdomain', 'custom'] as const).map((id) => ({ id, label: t.kinds[id] }))}
      />
      <TextField
        label={isSubdomain ? t.subdomain : t.custom}
        value={name}
        onChange={setName}
        autoComplete="off"
        {...(hint && { hint })}
        autoFocus
      />
      <TargetFields target={target} onChange={setTarget} />
    </FormDialog>
  );
}

export function ChangeDomainDialog({ domain, onClose }: { domain: Domain; onClose: () => void }) {
  const t = useText(addresses);
  const r = useText(reach);
  const port = programPort(domain);
  const [target, setTarget] = useState<Target>({
    to: port === null ? 'gateway' : 'program',
    port: port === null ? '' : String(port),
    isProtected: domain.protected,
  });
  const opens = !isProtected(target) && (domain.protected || portOf(target) !== port);
  const closes = isProtected(target) && !domain.protected;
  const change = useMutation({
    mutationFn: () => changeDomain(domain.agentId, domain.id, portOf(target), isProtected(target)),
    onSuccess: () => showToast(t.changed(domain.domain)),
  });
  return (
    <FormDialog
      title={t.changeDomain(domain.domain)}
      action={t.change}
      onClose={onClose}
      onSubmit={change.mutateAsync}
      isDisabled={!isComplete(target)}
      question={opens ? r.domainOpens(portOf(target) ?? 0) : closes ? r.domainCloses : ''}
    >
      <TargetFields target={target} onChange={setTarget} />
    </FormDialog>
  );
}

function TargetFields({ target, onChange }: { target: Target; onChange: (target: Target) => void }) {
  const t = useText(addresses);
  return (
    <>
      <Select
        label={t.target}
        value={target.to}
        onChange={(to) => onChange({ ...target, to })}
        choices={(['program', 'gateway'] as const).map((id) => ({ id, label: t.targets[id] }))}
      />
      {target.to === 'program' && (
        <>
          <TextField
            label={t.port}
            hint={t.portNumber}
            value={target.port}
            onChange={(port) => onChange({ ...target, port })}
            inputMode="numeric"
            autoComplete="off"
          />
          <AccessSelect isProtected={target.isProtected} onChange={(is) => onChange({ ...target, isProtected: is })} />
        </>
      )}
    </>
  );
}
