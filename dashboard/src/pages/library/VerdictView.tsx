import type { Verdict } from '../../api/library';
import { Note, PlainList } from '../../components/Row';
import { StatusBadge, type Tone } from '../../components/StatusBadge';
import { useText } from '../../i18n/language';
import * as library from '../../i18n/library';

const TONES: Record<Verdict['level'], Tone> = { clean: 'ok', review: 'warn', dangerous: 'danger' };

export function VerdictBadge({ verdict }: { verdict: Verdict | null }) {
  return verdict && <LevelBadge level={verdict.level} />;
}

export function LevelBadge({ level }: { level: Verdict['level'] }) {
  const t = useText(library);
  return <StatusBadge tone={TONES[level]}>{t.verdicts[level]}</StatusBadge>;
}

/** What the check of a skill found, with the places. */
export function VerdictView({ verdict }: { verdict: Verdict | null }) {
  const t = useText(library);
  if (!verdict) return null;
  return (
    <>
      <div>
        <VerdictBadge verdict={verdict} />
      </div>
      <Note>{t.verdictText[verdict.level]}</Note>
      {verdict.findings.length > 0 && (
        <PlainList label={t.verdict}>
          {verdict.findings.map((finding, index) => (
            <li key={index}>
              <strong>{finding.rule}</strong> ({t.finding(finding.path, finding.line)})<br />
              <code>{finding.excerpt}</code>
            </li>
          ))}
        </PlainList>
      )}
    </>
  );
}
