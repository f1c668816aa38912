import { memo, type ReactNode } from 'react';
import ReactMarkdown, { type Components } from 'react-markdown';
import remarkGfm from 'remark-gfm';

import * as chat from '../i18n/chat';
import { useText } from '../i18n/language';
import { CodeBlock } from './CodeBlock';
import styles from './Markdown.module.css';

const PLUGINS = [remarkGfm];
const COMPONENTS: Components = {
  a: ({ href, children }) => <SafeLink address={href}>{children}</SafeLink>,
  img: ({ src, alt }) => <ImageLink src={typeof src === 'string' ? src : ''} alt={alt ?? ''} />,
  pre: ({ node }) => <CodeBlock code={textOf(node).replace(/\n$/, '')} />,
  table: ({ children }) => (
    <div className={styles.table} role="region" tabIndex={0}>
      <table>{children}</table>
    </div>
  ),
};

/** An image of a message as a link: loading it would tell a foreign server who reads. */
function ImageLink({ src, alt }: { src: string; alt: string }) {
  const t = useText(chat);
  return <SafeLink address={src}>{t.image(alt)}</SafeLink>;
}

/** A link that opens a window of its own. An address that is no web or mail address arrives empty: it is text. */
function SafeLink({ address, children }: { address: string | undefined; children: ReactNode }) {
  if (!address) return children;
  return (
    <a href={address} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  );
}

interface HastNode {
  readonly value?: string;
  readonly children?: readonly unknown[];
}

function textOf(node: unknown): string {
  const { value, children } = node as HastNode;
  return value ?? (children ?? []).map(textOf).join('');
}

/** Text of a model as Markdown. HTML in it is shown as text, images are links. */
export const Markdown = memo(function Markdown({ text }: { text: string }) {
  return (
    <div className={styles.markdown}>
      <ReactMarkdown remarkPlugins={PLUGINS} components={COMPONENTS}>
        {text}
      </ReactMarkdown>
    </div>
  );
});
