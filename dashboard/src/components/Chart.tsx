import 'uplot/dist/uPlot.min.css';

import { useEffect, useRef } from 'react';
import uPlot from 'uplot';

import { watchDark } from '../app/theme';
import { useLanguage } from '../i18n/language';
import styles from './Chart.module.css';

export interface Series {
  readonly title: string;
  readonly shade: 'strong' | 'soft';
  readonly values: readonly number[];
}

interface Props {
  label: string;
  /** Days like 2026-01-31. */
  days: readonly string[];
  /** Drawn on top of each other, the first one at the bottom. */
  series: readonly Series[];
  format: (value: number) => string;
  /** Names the sums in the legend, while no day is pointed at. */
  totalTitle: string;
}

const HEIGHT_PIXELS = 220;
const DAY_SECONDS = 86_400;
const AXIS_PIXELS = 56;
const DAYS_PIXELS = 30;
const WIDEST_BAR = 44;
const SHADES = { strong: 'var(--accent)', soft: 'color-mix(in srgb, var(--accent) 42%, var(--surface))' };
const STEPS = Array.from({ length: 16 }, (_, digits) => [1, 2, 5].map((first) => first * 10 ** digits)).flat();

/** Stacked bars by day. Show the same numbers in a table beside it: to readers of the screen it is a picture. */
export function Chart({ label, days, series, format, totalTitle }: Props) {
  const { language } = useLanguage();
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = host.current!;
    const props = { label, days, series, format, totalTitle };
    const draw = () => new uPlot(chartOptions(element, props, language), chartData(days, series), element);
    let chart = draw();
    const observer = new ResizeObserver(() => chart.setSize({ width: element.clientWidth, height: HEIGHT_PIXELS }));
    observer.observe(element);
    const unwatch = watchDark(() => {
      chart.destroy();
      chart = draw();
    });
    return () => {
      unwatch();
      observer.disconnect();
      chart.destroy();
    };
  }, [days, series, format, totalTitle, label, language]);
  return <div ref={host} className={styles.chart} role="img" aria-label={label} />;
}

/** Return the days and the tops of the bars; the highest first, so that lower ones are drawn over them. */
export function chartData(days: readonly string[], series: readonly Series[]): uPlot.AlignedData {
  const tops = series.map((_, count) =>
    days.map((_day, index) => series.slice(0, count + 1).reduce((sum, one) => sum + one.values[index]!, 0)),
  );
  return [days.map((day) => Date.parse(day) / 1000), ...tops.reverse()];
}

function chartOptions(element: HTMLElement, props: Props, language: string): uPlot.Options {
  const { series, format, days } = props;
  const short = new Intl.DateTimeFormat(language, { day: 'numeric', month: 'short', timeZone: 'UTC' });
  const day = (seconds: number) => short.format(seconds * 1000);
  const muted = colorOf(element, 'var(--muted)');
  const axis = { stroke: muted, grid: { stroke: colorOf(element, 'var(--line)'), width: 1 }, ticks: { show: false } };
  const bars = uPlot.paths.bars!({ size: [0.72, WIDEST_BAR], radius: 0.12 });
  return {
    width: element.clientWidth,
    height: HEIGHT_PIXELS,
    padding: [10, 6, 0, 0],
    cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
    scales: {
      x: { range: (_, first, last) => [first - DAY_SECONDS / 2, last + DAY_SECONDS / 2] },
      y: { range: (_, __, most) => [0, most > 0 ? most * 1.05 : 1] },
    },
    axes: [
      { ...axis, grid: { show: false }, size: DAYS_PIXELS, space: 72, values: (_, splits) => splits.map(day) },
      { ...axis, size: AXIS_PIXELS, incrs: STEPS, values: (_, splits) => splits.map(format) },
    ],
    legend: { markers: { width: 0 } },
    series: [
      { label: '', value: (_, seconds: number | null) => (seconds === null ? props.totalTitle : day(seconds)) },
      ...series
        .map(({ title, shade, values }) => ({
          label: title,
          width: 0,
          fill: colorOf(element, SHADES[shade]),
          points: { show: false },
          paths: bars,
          value: (_: uPlot, __: number, ___: number, index: number | null) =>
            format(index === null || index >= days.length ? values.reduce((sum, one) => sum + one, 0) : values[index]!),
        }))
        .reverse(),
    ],
  };
}

/** Return a colour of the style sheet as a canvas takes it. */
function colorOf(element: HTMLElement, value: string): string {
  element.style.color = value;
  const { color } = getComputedStyle(element);
  element.style.color = '';
  return color;
}
