import { useEffect, useState } from 'react';

import styles from './ImageView.module.css';

interface Props {
  content: Blob;
  label: string;
  /** What stands there if the browser cannot read the content. */
  failure: string;
}

/** An image that is already loaded. As an image, it runs no scripts and loads nothing, whatever is in it. */
export function ImageView({ content, label, failure }: Props) {
  const [address, setAddress] = useState<string | null>(null);
  const [isBroken, setBroken] = useState(false);
  useEffect(() => {
    const made = URL.createObjectURL(content);
    setAddress(made);
    setBroken(false);
    return () => URL.revokeObjectURL(made);
  }, [content]);
  if (isBroken) return <p>{failure}</p>;
  return address && <img className={styles.image} src={address} alt={label} onError={() => setBroken(true)} />;
}
