import { Plus, X } from 'lucide-react';
import { useState, type KeyboardEvent } from 'react';

import { Button } from './Button';
import { TextField } from './Field';
import styles from './TextList.module.css';

interface Props {
  label: string;
  hint?: string;
  /** The texts at first. */
  values: readonly string[];
  onChange: (values: readonly string[]) => void;
  /** The verb of the button that adds what was typed. */
  addLabel: string;
  removeLabel: (value: string) => string;
}

const split = (text: string) => text.split(/[\s,;]+/).filter(Boolean);

/**
 * Edits a list of short texts. Several can be pasted at once, separated by spaces, commas or lines.
 * What is still in the field counts, too: people send a form without adding it first.
 */
export function TextList({ label, hint, values, onChange, addLabel, removeLabel }: Props) {
  const [typed, setTyped] = useState('');
  const [listed, setListed] = useState(values);
  const report = (kept: readonly string[], text: string) => {
    setListed(kept);
    setTyped(text);
    onChange([...new Set([...kept, ...split(text)])]);
  };
  const add = () => report([...new Set([...listed, ...split(typed)])], '');
  const press = (event: KeyboardEvent) => {
    if (event.key !== 'Enter' || event.nativeEvent.isComposing) return;
    event.preventDefault(); // adds instead of sending the form around it
    add();
  };
  return (
    <div className={styles.list}>
      <div className={styles.entry}>
        <TextField label={label} value={typed} onChange={(text) => report(listed, text)} onKeyDown={press} autoComplete="off" />
        <Button onPress={add} isDisabled={!typed.trim()}>
          <Plus size={16} aria-hidden /> {addLabel}
        </Button>
      </div>
      {hint && <span className={styles.hint}>{hint}</span>}
      {listed.length > 0 && (
        <ul className={styles.values} aria-label={label}>
          {listed.map((value) => (
            <li key={value} className={styles.value}>
              <code>{value}</code>
              <button
                type="button"
                className={styles.remove}
                aria-label={removeLabel(value)}
                onClick={() =>
                  report(
                    listed.filter((one) => one !== value),
                    typed,
                  )
                }
              >
                <X size={14} aria-hidden />
              </button>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
