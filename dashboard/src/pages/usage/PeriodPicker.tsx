import { PERIODS, type Period } from '../../api/usage';
import { Select } from '../../components/Select';
import { useText } from '../../i18n/language';
import * as usage from '../../i18n/usage';

export function PeriodPicker({ period, onChange }: { period: Period; onChange: (period: Period) => void }) {
  const t = useText(usage);
  return (
    <Select
      label={t.period}
      value={String(period)}
      choices={PERIODS.map((days) => ({ id: String(days), label: t.days(days) }))}
      onChange={(days) => onChange(Number(days) as Period)}
    />
  );
}
