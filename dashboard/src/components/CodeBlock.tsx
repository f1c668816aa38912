import { Check, Copy } from 'lucide-react';
import { useState } from 'react';

import * as common from '../i18n/common';
import { useText } from '../i18n/language';
import { Button } from './Button';
import styles from './CodeBlock.module.css';

const COPIED_MS = 2_000;

export function CodeBlock({ code, label }: { code: string; label?: string }) {
  const t = useText(common);
  return (
    <div className={styles.block}>
      <pre className={styles.code} tabIndex={0} role="region" aria-label={label ?? t.code}>
        <code>{code}</code>
      </pre>
      <CopyButton text={code} label={t.copy} />
    </div>
  );
}

/** Copies a text. Without a clipboard (plain HTTP beyond this machine) it is not shown; the text can be selected. */
export function CopyButton({ text, label }: { text: string; label: string }) {
  const t = useText(common);
  const [isCopied, setCopied] = useState(false);
  if (!navigator.clipboard) return null;
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), COPIED_MS);
  };
  return (
    <Button kind="quiet" iconOnly aria-label={isCopied ? t.copied : label} onPress={() => void copy()}>
      {isCopied ? <Check size={16} aria-hidden /> : <Copy size={16} aria-hidden />}
    </Button>
  );
}
