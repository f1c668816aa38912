import { ChevronRight } from 'lucide-react';
import type { ReactNode } from 'react';
import { Button, Tree as AriaTree, TreeItem, TreeItemContent } from 'react-aria-components';

import styles from './Tree.module.css';

export interface TreeNode {
  readonly id: string;
  readonly title: string;
  readonly icon: ReactNode;
  /** Undefined for a leaf, null for a branch that is not loaded. */
  readonly children?: readonly TreeNode[] | null;
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
  /** Shown in branches without entries, and while they are loaded. */
  emptyLabel: string;
  loadingLabel: string;
}

/** A tree of folders. Arrow keys move, right and left open and close, Enter chooses. */
export function Tree({ label, nodes, expanded, onExpand, selected, onSelect, toggleLabel, emptyLabel, loadingLabel }: Props) {
  // Only a branch that has items opens by keys, and so one without any gets one that says so.
  const renderNone = ({ id, children }: TreeNode) => (
    <TreeItem id={`${id}/`} textValue={children ? emptyLabel : loadingLabel} className={styles.item!} isDisabled>
      <TreeItemContent>
        {({ level }) => (
          <div className={styles.none} style={{ paddingInlineStart: `${(level - 1) * 16 + 38}px` }}>
            {children ? emptyLabel : loadingLabel}
          </div>
        )}
      </TreeItemContent>
    </TreeItem>
  );
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
      {node.children !== undefined && (node.children?.length ? node.children.map(render) : renderNone(node))}
    </TreeItem>
  );
  return (
    <AriaTree
      aria-label={label}
      className={styles.tree!}
      selectionMode="single"
      selectionBehavior="toggle"
      disallowEmptySelection
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
