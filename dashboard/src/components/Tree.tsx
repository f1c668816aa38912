import { ChevronRight } from 'lucide-react';
import type { ReactNode } from 'react';
import { Button, Tree as AriaTree, TreeItem, TreeItemContent } from 'react-aria-components';

import styles from './Tree.module.css';

export interface TreeNode {
  readonly id: string;
  readonly title: string;
  readonly icon: ReactNode;
  /** Undefined for a leaf. A closed branch has none yet. */
  readonly children?: readonly TreeNode[];
}

interface Props {
  label: string;
  nodes: readonly TreeNode[];
  expanded: ReadonlySet<string>;
  onExpand: (expanded: ReadonlySet<string>) => void;
  selected: string | null;
  onSelect: (id: string) => void;
  /** Opens and closes branches: "Show the content". */
  toggleLabel: string;
}

/** A tree of folders. Arrow keys move, right and left open and close. */
export function Tree({ label, nodes, expanded, onExpand, selected, onSelect, toggleLabel }: Props) {
  const render = (node: TreeNode) => (
    <TreeItem key={node.id} id={node.id} textValue={node.title} className={styles.item!} hasChildItems={node.children !== undefined}>
      <TreeItemContent>
        {({ level }) => (
          <div className={styles.row} style={{ paddingInlineStart: `${(level - 1) * 16}px` }}>
            {node.children === undefined ? (
              <span className={styles.gap} />
            ) : (
              <Button slot="chevron" className={styles.chevron!} aria-label={toggleLabel}>
                <ChevronRight size={15} aria-hidden />
              </Button>
            )}
            {node.icon}
            <span className={styles.title}>{node.title}</span>
          </div>
        )}
      </TreeItemContent>
      {node.children?.map(render)}
    </TreeItem>
  );
  return (
    <AriaTree
      aria-label={label}
      className={styles.tree!}
      selectionMode="single"
      selectionBehavior="replace"
      selectedKeys={selected === null ? [] : [selected]}
      onSelectionChange={(keys) => {
        const [key] = keys === 'all' ? [] : [...keys];
        if (key !== undefined) onSelect(String(key));
      }}
      expandedKeys={expanded}
      onExpandedChange={(keys) => onExpand(new Set([...keys].map(String)))}
    >
      {nodes.map(render)}
    </AriaTree>
  );
}
