import type { NewTask, Task } from '../../../api/tasks';
import type { en } from '../../../i18n/tasks.en';

const EXPRESSIONS = { hourly: '0 * * * *', daily: '0 8 * * *', workdays: '0 8 * * 1-5', weekly: '0 8 * * 1' } as const;
export type Preset = keyof typeof EXPRESSIONS | 'custom';
export const PRESETS: readonly Preset[] = ['hourly', 'daily', 'workdays', 'weekly', 'custom'];
const MINUTE_MS = 60_000;

/** Return the schedule of a form: a preset in the reader's time zone, or a schedule as text. */
export function toSchedule(preset: Preset, custom: string, zone: string): NewTask['schedule'] {
  return preset === 'custom' ? custom.trim() : { kind: 'cron', expr: EXPRESSIONS[preset], tz: zone };
}

/** Return a schedule in words. A cron expression that is no preset stays as it is. */
export function describeSchedule(schedule: Task['schedule'], t: typeof en, language: string): string {
  if (!schedule) return t.unknown;
  if (schedule.kind === 'every' && schedule.everyMs) return t.every(Math.round(schedule.everyMs / MINUTE_MS));
  if (schedule.kind === 'at' && schedule.at) {
    const moment = new Date(schedule.at);
    return t.once(new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'short' }).format(moment));
  }
  const preset = (Object.keys(EXPRESSIONS) as (keyof typeof EXPRESSIONS)[]).find((one) => EXPRESSIONS[one] === schedule.expr);
  const words = preset ? t.presets[preset] : (schedule.expr ?? t.unknown);
  return schedule.tz ? `${words} (${schedule.tz})` : words;
}
