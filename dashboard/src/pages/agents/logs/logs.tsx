import { getRouteApi } from '@tanstack/react-router';
import { useVirtualizer } from '@tanstack/react-virtual';
import { ArrowDown, Download, Eraser, Pause, Play } from 'lucide-react';
import { useEffect, useMemo, useRef, useState, useSyncExternalStore, type Ref } from 'react';

import { filterLines, LEVELS, type LogLevel, type LogLine } from '../../../api/logLines';
import { LogStream, type LogState } from '../../../api/logs';
import { Button } from '../../../components/Button';
import { ErrorPanel } from '../../../components/ErrorPanel';
import { TextField } from '../../../components/Field';
import { Page } from '../../../components/Page';
import { Select } from '../../../components/Select';
import { StatusBadge, type Tone } from '../../../components/StatusBadge';
import { useFollowEnd } from '../../../components/useFollowEnd';
import { useText } from '../../../i18n/language';
import * as logs from '../../../i18n/logs';
import styles from './logs.module.css';

const route = getRouteApi('/shell/agents/$id/logs');
const TONES: Record<LogState, Tone> = { connecting: 'busy', live: 'ok', retrying: 'warn', failed: 'danger' };
const ROW_PIXELS = 22;

export function AgentLogsPage() {
  const { id } = route.useParams();
  const [stream, setStream] = useState<LogStream | null>(null);
  useEffect(() => {
    const opened = new LogStream(id);
    setStream(opened);
    return () => opened.close();
  }, [id]);
  return stream && <LogView stream={stream} agentId={id} />;
}

function LogView({ stream, agentId }: { stream: LogStream; agentId: string }) {
  const t = useText(logs);
  const { state, error, lines: all } = useSyncExternalStore(stream.watch, stream.state);
  const [frozen, setFrozen] = useState<readonly LogLine[] | null>(null);
  const [level, setLevel] = useState<LogLevel>('TRACE');
  const [text, setText] = useState('');
  const source = frozen ?? all;
  const shown = useMemo(() => filterLines(source, level, text), [source, level, text]);
  const arrived = frozen ? all.filter(({ id }) => id > (frozen.at(-1)?.id ?? 0)).length : 0;
  const clear = () => {
    stream.clear();
    setFrozen(frozen && []);
  };
  const actions = (
    <>
      <Button onPress={() => setFrozen(frozen ? null : all)}>
        {frozen ? <Play size={17} aria-hidden /> : <Pause size={17} aria-hidden />} {frozen ? t.resume : t.pause}
      </Button>
      <Button iconOnly aria-label={t.save} onPress={() => saveLines(shown, agentId)} isDisabled={shown.length === 0}>
        <Download size={17} aria-hidden />
      </Button>
      <Button iconOnly aria-label={t.clear} onPress={clear} isDisabled={all.length === 0}>
        <Eraser size={17} aria-hidden />
      </Button>
    </>
  );
  const lead = (
    <span className={styles.state}>
      <StatusBadge tone={TONES[state]}>{t.states[state]}</StatusBadge>
      <span>{t.count(shown.length, source.length)}</span>
      {frozen && <span role="status">{t.paused(arrived)}</span>}
    </span>
  );
  return (
    <Page title={t.title} lead={lead} actions={actions} fills>
      <div className={styles.layout}>
        <div className={styles.filters}>
          <TextField label={t.search} type="search" value={text} onChange={setText} autoComplete="off" />
          <Select
            label={t.level}
            value={level}
            onChange={setLevel}
            choices={LEVELS.map((one) => ({ id: one, label: t.levels[one] }))}
          />
        </div>
        {error !== null && <ErrorPanel error={error} onRetry={stream.retry} />}
        <Lines lines={shown} empty={source.length === 0 ? t.empty : t.noMatch} />
      </div>
    </Page>
  );
}

/** The lines in view. It follows the end unless the reader scrolled up. */
function Lines({ lines, empty }: { lines: readonly LogLine[]; empty: string }) {
  const t = useText(logs);
  const frame = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => frame.current,
    estimateSize: () => ROW_PIXELS,
    getItemKey: (index) => lines[index]!.id,
    overscan: 20,
  });
  const total = virtual.getTotalSize();
  const { isAtEnd, onScroll, follow } = useFollowEnd(frame, `${total} ${lines.at(-1)?.id}`);
  return (
    <div className={styles.scroller}>
      <div ref={frame} className={styles.frame} onScroll={onScroll} tabIndex={0} role="log" aria-live="off" aria-label={t.title}>
        {lines.length === 0 && <p className={styles.empty}>{empty}</p>}
        <div className={styles.lines} style={{ height: total }}>
          {virtual.getVirtualItems().map((item) => (
            <Line key={item.key} ref={virtual.measureElement} line={lines[item.index]!} index={item.index} top={item.start} />
          ))}
        </div>
      </div>
      {!isAtEnd && (
        <div className={styles.latest}>
          <Button onPress={follow}>
            <ArrowDown size={16} aria-hidden /> {t.latest}
          </Button>
        </div>
      )}
    </div>
  );
}

interface LineProps {
  line: LogLine;
  index: number;
  top: number;
  ref: Ref<HTMLDivElement>;
}

function Line({ line, index, top, ref }: LineProps) {
  return (
    <div
      ref={ref}
      data-index={index}
      className={`${styles.line} ${styles[line.level] ?? ''}`}
      style={{ transform: `translateY(${top}px)` }}
    >
      <time dateTime={line.timestamp}>{line.timestamp.slice(11, 19)}</time> <b>{line.level.padEnd(5)}</b>{' '}
      <span className={styles.source}>{line.source}</span> {line.message}
    </div>
  );
}

function saveLines(lines: readonly LogLine[], agentId: string): void {
  const text = lines.map((line) => `${line.timestamp} ${line.level} ${line.source} ${line.message}\n`).join('');
  const address = URL.createObjectURL(new Blob([text], { type: 'text/plain' }));
  Object.assign(document.createElement('a'), { href: address, download: `${agentId}.log` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 0);
}
