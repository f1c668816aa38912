import type { Access, ChannelDraft, ChannelName } from '../../../api/channels';
import { TextField } from '../../../components/Field';
import { Note } from '../../../components/Row';
import { Select } from '../../../components/Select';
import { TextList } from '../../../components/TextList';
import * as channels from '../../../i18n/channels';
import { useText } from '../../../i18n/language';
import * as reach from '../../../i18n/reach';

type Writers = Pick<ChannelDraft, 'access' | 'allowFrom'>;

/** Say who may write to a channel, and what a change of that means for whom; a change for no one is an empty text. */
export function useWriters(name: ChannelName) {
  const t = useText(channels);
  const r = useText(reach);
  const describe = ({ access, allowFrom }: Writers): string =>
    [access !== 'listed' && t.access[access], access !== 'open' && allowFrom.length > 0 && t.onList(allowFrom.length)]
      .filter(Boolean)
      .join(', ');
  const describeChange = (before: Writers | null, after: Writers): string => {
    if (after.access === 'open') return before?.access === 'open' ? '' : r.channelOpens(t.names[name]);
    if (!before) return '';
    if (before.access !== after.access) return r.channelBecomes(describe(before), describe(after));
    const dropped = before.allowFrom.filter((id) => !after.allowFrom.includes(id)).length;
    const added = after.allowFrom.filter((id) => !before.allowFrom.includes(id)).length;
    return [dropped > 0 && r.channelDrops(dropped), added > 0 && r.channelAdds(added)].filter(Boolean).join(' ');
  };
  return { describe, describeChange };
}

interface Props {
  name: ChannelName;
  draft: ChannelDraft;
  onChange: (draft: ChannelDraft) => void;
}

const ACCESSES: readonly Access[] = ['pairing', 'listed', 'open'];

/** The tokens of a channel; those of a stored one are kept when they stay empty. */
export function TokenFields({ name, draft, onChange, hint }: Props & { hint?: string }) {
  const t = useText(channels);
  if (name === 'whatsapp') return null;
  const common = { type: 'password', autoComplete: 'off', monospace: true, ...(hint && { hint }) } as const;
  return (
    <>
      <TextField {...common} label={t.botToken} value={draft.botToken} onChange={(botToken) => onChange({ ...draft, botToken })} />
      {name === 'slack' && (
        <TextField {...common} label={t.appToken} value={draft.appToken} onChange={(appToken) => onChange({ ...draft, appToken })} />
      )}
    </>
  );
}

/** Who may write to the agent on a channel, and the people who are known already. */
export function AccessFields({ name, draft, onChange, hasCodes }: Props & { hasCodes: boolean }) {
  const t = useText(channels);
  const { access, allowFrom } = draft;
  return (
    <>
      <Select
        label={t.policy}
        value={access}
        onChange={(next) => onChange({ ...draft, access: next })}
        choices={ACCESSES.map((id) => ({ id, label: t.access[id], description: t.accessText[id] }))}
        hint={t.accessText[access]}
      />
      {access === 'pairing' && name === 'discord' && !hasCodes && <Note small>{t.noCodes}</Note>}
      {access !== 'open' && (
        <TextList
          label={t.allowFrom[access]}
          hint={t.userId[name]}
          values={allowFrom}
          onChange={(next) => onChange({ ...draft, allowFrom: next })}
          addLabel={t.add}
          removeLabel={t.removeId}
        />
      )}
    </>
  );
}
